import type { ResultTable } from '../result.ts';
import type { NoopResult, Delays, ScheduleBenchResult, StackUsage, TicksResult, Usage } from './result.ts';

const number = (value: number | null, digits = 1): string => (value === null ? '-' : value.toFixed(digits));
const usage = ({ cpu_seconds, memory_bytes }: Usage): string =>
  `${number(cpu_seconds)} s, ${number(memory_bytes === null ? null : memory_bytes / 1e6, 0)} MB`;
const usages = ({ worker, server, temporal, postgresql }: StackUsage): string[] =>
  [worker, server, temporal, postgresql].map(usage);
const usageHeadings = ['worker', 'server', 'Temporal', 'PostgreSQL'];
const delays = ({ p50, p99, maximum }: Delays): string =>
  [p50, p99, maximum].map((value) => number(value, 2)).join(' / ');

const noopRow = ({ workflows, concurrency, seconds, per_second, usage: used }: NoopResult) => [
  `no-op workflows, one activity each, ${String(concurrency)} concurrent`,
  String(workflows),
  number(seconds),
  number(per_second),
  '-',
  '-',
  '-',
  '-',
  ...usages(used),
];

const tickRow = (one: TicksResult) => [
  one.jitter === 0 ? 'no jitter' : `jitter ${String(one.jitter)} of the interval`,
  `${String(one.completed_runs)} of ${String(one.expected_runs)}`,
  String(one.manifests),
  delays(one.due_to_created),
  delays(one.due_to_first_task),
  delays(one.due_to_completed),
  number(one.run.events + one.schedule_events_per_run),
  number(one.run.actions + one.schedule_actions_per_run),
  number(one.statements_per_run),
  ...usages(one.usage),
];

/** The results as tables. */
export function resultTables(found: ScheduleBenchResult): readonly ResultTable[] {
  const { backfill, creation, largest_history, machine, load } = found;
  return [
    {
      title: 'Backfill of an empty source',
      headings: [
        'workload',
        'runs',
        'seconds',
        'per second',
        '÷ no-op',
        'events',
        'actions',
        'statements',
        ...usageHeadings,
      ],
      rows: [
        ...found.noop.map(noopRow),
        [
          `backfill, ${String(backfill.concurrency)} concurrent`,
          String(backfill.intervals),
          number(backfill.seconds),
          number(backfill.runs_per_second),
          number(backfill.ratio_to_noop, 2),
          number(backfill.run.events + backfill.backfill_events_per_run),
          number(backfill.run.actions + backfill.backfill_actions_per_run),
          number(backfill.statements_per_run),
          ...usages(backfill.usage),
        ],
      ],
    },
    {
      title: `${String(found.exports)} exports ${found.interval}: seconds after due, p50 / p99 / max`,
      headings: [
        ...['ticks', 'Completed', 'manifests', 'to created', 'to first task', 'to Completed'],
        ...['events', 'actions', 'statements', ...usageHeadings],
      ],
      rows: found.ticks.map(tickRow),
    },
    {
      title: 'Other results',
      headings: ['measurement', 'value'],
      rows: [
        ['exports created over HTTP, per second', number(creation?.per_second ?? null)],
        ['longest history, events', `${String(largest_history.events)} (${largest_history.workflow_id})`],
        ['state of the backfill, bytes', String(backfill.backfill_state_bytes)],
        ['settle delay of each run, seconds', number(found.settle_seconds)],
        ['cores, load before', `${String(machine.cpus)}, ${load.before.toFixed(2)}`],
      ],
    },
  ];
}
