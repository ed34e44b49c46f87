# SPDX-License-Identifier: MIT
"""The chart of bench/run: a bar a row, as an SVG written by hand (and a PNG where rsvg-convert is installed).

Why a logarithmic scale: a ratio of 4 and one of 1/4 are the same distance from "equal", and a row at 20x must not
press those at 1x flat. Bars grow from the line at 1x, to the right where gort is faster, to the left where Go is.
"""
import math
import os
import shutil
import subprocess
from xml.sax.saxutils import escape

LEFT, BAR, RIGHT = 310, 560, 200       # pixels: labels, bars, figures
TOP, STEP, THICK, BOTTOM = 96, 26, 14, 78
INK, SOFT, GRID = "#1f2933", "#66727f", "#e4e8ec"
MET, MISSED, NEUTRAL = "#2a9d7f", "#d9652b", "#8a99a8"
FONT = "font-family=\"'DejaVu Sans', Verdana, sans-serif\""


def nanoseconds(ns):
    for limit, unit, factor in ((1e3, "ns", 1), (1e6, "us", 1e3), (1e9, "ms", 1e6)):
        if ns < limit:
            return f"{ns / factor:.3g} {unit}" if ns / factor < 100 else f"{ns / factor:.0f} {unit}"
    return f"{ns / 1e9:.3g} s"


def text(x, y, s, size=12, color=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(s)}</text>')


def rect(x, y, w, h, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{color}"/>'


def line(x, y1, y2, color, width=1):
    return f'<line x1="{x:.1f}" y1="{y1:.1f}" x2="{x:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'


def color_of(row):
    if "min_ratio" not in row:
        return NEUTRAL
    return MET if row["ok"] else MISSED


def draw(rows, info):
    ratios = [n["ratio"] for n in rows] + [n["min_ratio"] for n in rows if "min_ratio" in n]
    low = min(-1, math.floor(math.log2(min(ratios))))
    high = max(3, math.ceil(math.log2(max(ratios))))
    width, height = LEFT + BAR + RIGHT, TOP + STEP * len(rows) + BOTTOM
    end = TOP + STEP * len(rows)

    def at(ratio):
        return LEFT + BAR * (math.log2(ratio) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           rect(0, 0, width, height, "#ffffff"),
           text(24, 32, "gort against Go: how many times faster", 18, weight="bold"),
           text(24, 54, f"{info['cpu']}, {info['cpus']} CPUs, Linux {info['kernel']}; {info['go']}; {info['cc']}",
                11, SOFT)]
    for power in range(low, high + 1):
        out.append(line(at(2 ** power), TOP - 6, end, GRID))
        label = f"{2 ** power}x" if power >= 0 else f"1/{2 ** -power}x"
        out.append(text(at(2 ** power), TOP - 12, label, 11, SOFT, "middle"))
    for i, n in enumerate(rows):
        y = TOP + STEP * i + STEP / 2
        color = color_of(n)
        a, b = sorted((at(1), at(n["ratio"])))
        name = f"{n['row']}, {n['procs']} proc{'s' if n['procs'] > 1 else ''}"
        name += f" ({n['twin'].rpartition('DEBUG=')[2]})" if n["twin"] != "Go" else ""
        ratio = f"{n['ratio']:.2g}x" if n["ratio"] < 10 else f"{n['ratio']:.0f}x"
        times = f"{nanoseconds(n['gort']['ns'])} / {nanoseconds(n['go']['ns'])}"
        out.append(text(LEFT - 12, y + 4, name, anchor="end"))
        out.append(rect(a, y - THICK / 2, max(b - a, 1), THICK, color))
        if "min_ratio" in n:
            out.append(line(at(n["min_ratio"]), y - THICK / 2 - 4, y + THICK / 2 + 4, INK, 2.5))
        out.append(text(LEFT + BAR + 14, y + 4, ratio, weight="bold"))
        out.append(text(LEFT + BAR + 64, y + 4, times, 11, SOFT))
    out.append(line(at(1), TOP - 6, end, INK, 1.5))
    out += legend(rows, end + 24, info)
    return "\n".join(out + ["</svg>", ""])


def legend(rows, y, info):
    out, x = [], 24
    for color, words in ((MET, "target met"), (MISSED, "target missed"), (NEUTRAL, "no ratio to reach")):
        if any(color_of(n) == color for n in rows):
            out += [rect(x, y - 10, 12, 12, color), text(x + 18, y, words, 11)]
            x += 36 + 7 * len(words)
    out += [line(x + 4, y - 12, y + 4, INK, 2.5), text(x + 14, y, "the target", 11),
            text(x + 110, y, "right: gort / Go (or what is named instead), time of one operation; the scale is logarithmic", 11, SOFT)]
    notes = [f"spawning at {n['procs']} procs takes {n['scale_gort']:.2f} of the time at {n['scale_of']}"
             f" (target: at most {n['max_scale']:g})" for n in rows if "scale_gort" in n]
    notes.append(f"best (or median) of {info['rounds']} rounds in turns, {info['date']}")
    out.append(text(24, y + 24, "; ".join(notes), 11, SOFT))
    return out


def write(path, lines, info):
    """Writes the SVG at path, and the PNG beside it if that can be done; returns what was written."""
    with open(path, "w") as f:
        f.write(draw([n for n in lines if "ratio" in n], info))
    png = os.path.splitext(path)[0] + ".png"
    if shutil.which("rsvg-convert") and not subprocess.run(["rsvg-convert", "-z", "2", "-o", png, path]).returncode:
        return [path, png]
    return [path]
