/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - the hooks of the scheduler for models: those whose functions a model lacks are NULL.
 */
#ifndef GORT_TEST_MODEL_HOOKS_H
#define GORT_TEST_MODEL_HOOKS_H

#pragma weak gort__block_call_run
#pragma weak gort__block_left_open
#pragma weak gort__census_print
#pragma weak gort__census_take
#pragma weak gort__dump_who
#pragma weak gort__entry_attend
#pragma weak gort__entry_end_thread
#pragma weak gort__entry_leave_blocking
#pragma weak gort__entry_leave_slow
#pragma weak gort__entry_light_slow
#pragma weak gort__entry_plain
#pragma weak gort__entry_thread_ends
#pragma weak gort__find
#pragma weak gort__handoff_run_bound
#pragma weak gort__handoff_wait_bound
#pragma weak gort__idle_spin_stop
#pragma weak gort__idle_wake_p
#pragma weak gort__overflow_check
#pragma weak gort__overflow_end
#pragma weak gort__overflow_init
#pragma weak gort__poller_notice
#pragma weak gort__preempt_ask
#pragma weak gort__preempt_signal
#pragma weak gort__preempt_thread
#pragma weak gort__preempt_thread_end
#pragma weak gort__run_main_ends
#pragma weak gort__latency_begin
#pragma weak gort__latency_end
#pragma weak gort__scavenge_stack
#pragma weak gort__scavenge_stack_stir
#pragma weak gort__scavenge_stack_stir_locked
#pragma weak gort__schedtrace_tick
#pragma weak gort__supervisor_deadlock_locked
#pragma weak gort__supervisor_wake_locked
#pragma weak gort__sysmon_sleep_arm_locked
#pragma weak gort__sysmon_sleep_calm
#pragma weak gort__sysmon_sleep_disarm_locked
#pragma weak gort__sysmon_sleep_events
#pragma weak gort__sysmon_sleep_notify
#pragma weak gort__sysmon_sleep_timer
#pragma weak gort__sysmon_sleep_work
#pragma weak gort__world_event
#pragma weak gort__world_publish_sp
#pragma weak gort__world_retract_sp
#pragma weak gort__world_wait
#pragma weak gort__zombie_free

#include "wiring/hooks.c"
#include "sched/verbs.h"

#endif
