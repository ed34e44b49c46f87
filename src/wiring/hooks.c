/* SPDX-License-Identifier: MIT */
/*
 * hooks.c - which function each hook is.
 *
 * Threads: any; the table is constant.
 */
#include "sched/core/hooks.h"

#include "observe/observe.h"
#include "scavenge/scavenge.h"

const struct gort__hooks gort__hooks = {
    .threads =
        {
            .wake_p = gort__idle_wake_p,
            .find = gort__find,
            .spin_stop = gort__idle_spin_stop,
            .run_bound = gort__handoff_run_bound,
            .wait_bound = gort__handoff_wait_bound,
            .block_call_run = gort__block_call_run,
            .block_left_open = gort__block_left_open,
            .timer_first = gort__poller_notice,
        },
    .monitor =
        {
            .preempt_ask = gort__preempt_ask,
            .preempt_thread = gort__preempt_thread,
            .preempt_thread_end = gort__preempt_thread_end,
            .preempt_signal = gort__preempt_signal,
            .sysmon_work = gort__sysmon_sleep_work,
            .sysmon_notify = gort__sysmon_sleep_notify,
            .sysmon_calm = gort__sysmon_sleep_calm,
            .sysmon_arm_locked = gort__sysmon_sleep_arm_locked,
            .sysmon_disarm_locked = gort__sysmon_sleep_disarm_locked,
            .sysmon_timer = gort__sysmon_sleep_timer,
            .sysmon_events = gort__sysmon_sleep_events,
        },
    .life =
        {
            .attend = gort__entry_attend,
            .enter_plain = gort__entry_plain,
            .light_slow = gort__entry_light_slow,
            .leave_slow = gort__entry_leave_slow,
            .leave_blocking = gort__entry_leave_blocking,
            .end_thread = gort__entry_end_thread,
            .thread_ends = gort__entry_thread_ends,
            .zombie_free = gort__zombie_free,
            .main_ends = gort__run_main_ends,
            .supervisor_wake_locked = gort__supervisor_wake_locked,
            .deadlock_locked = gort__supervisor_deadlock_locked,
            .world_wait = gort__world_wait,
            .world_event = gort__world_event,
            .publish_sp = gort__world_publish_sp,
            .retract_sp = gort__world_retract_sp,
        },
    .outer =
        {
            .overflow_init = gort__overflow_init,
            .overflow_end = gort__overflow_end,
            .overflow_check = gort__overflow_check,
            .census_take = gort__census_take,
            .census_print = gort__census_print,
            .dump_who = gort__dump_who,
            .scavenge = gort__scavenge_stack,
            .schedtrace = gort__schedtrace_tick,
            .scavenge_stir = gort__scavenge_stack_stir,
            .scavenge_stir_locked = gort__scavenge_stack_stir_locked,
        },
};
