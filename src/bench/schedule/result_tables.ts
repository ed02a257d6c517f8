import type { BareResult, Delays, ScheduleBenchDocument, StackUse, TicksResult, Use } from './document.ts';

/** A table for people. */
export interface ResultTable {
  readonly title: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const number = (value: number | null, digits = 1): string => (value === null ? '-' : value.toFixed(digits));
const use = ({ cpu_seconds, memory_bytes }: Use): string =>
  `${number(cpu_seconds)} s, ${number(memory_bytes === null ? null : memory_bytes / 1e6, 0)} MB`;
const uses = ({ worker, server, temporal, postgresql }: StackUse): string[] =>
  [worker, server, temporal, postgresql].map(use);
const useHeadings = ['worker', 'server', 'Temporal', 'PostgreSQL'];
const delays = ({ p50, p99, maximum }: Delays): string =>
  [p50, p99, maximum].map((value) => number(value, 2)).join(' / ');

const bareRow = ({ workflows, at_once, seconds, per_second, use: used }: BareResult) => [
  `bare workflows, one activity each, ${String(at_once)} at once`,
  String(workflows),
  number(seconds),
  number(per_second),
  '-',
  '-',
  '-',
  '-',
  ...uses(used),
];

const tickRow = (one: TicksResult) => [
  one.jitter === 0 ? 'no jitter' : `jitter ${String(one.jitter)} of the interval`,
  `${String(one.completed_runs)} of ${String(one.expected_runs)}`,
  String(one.manifests),
  delays(one.due_to_opened),
  delays(one.due_to_first_task),
  delays(one.due_to_completed),
  number(one.run.events + one.schedule_events_per_run),
  number(one.run.actions + one.schedule_actions_per_run),
  number(one.statements_per_run),
  ...uses(one.use),
];

/** The results as tables. */
export function resultTables(found: ScheduleBenchDocument): readonly ResultTable[] {
  const { backfill, creation, largest_history, machine, load } = found;
  return [
    {
      title: 'Backfill of an empty source',
      headings: [
        'what',
        'runs',
        'seconds',
        'a second',
        '÷ bare',
        'events',
        'actions',
        'statements',
        ...useHeadings,
      ],
      rows: [
        ...found.bare.map(bareRow),
        [
          `backfill, ${String(backfill.at_once)} at once`,
          String(backfill.intervals),
          number(backfill.seconds),
          number(backfill.runs_per_second),
          number(backfill.ratio_to_bare, 2),
          number(backfill.run.events + backfill.backfill_events_per_run),
          number(backfill.run.actions + backfill.backfill_actions_per_run),
          number(backfill.statements_per_run),
          ...uses(backfill.use),
        ],
      ],
    },
    {
      title: `${String(found.exports)} exports ${found.interval}: seconds from due, p50 / p99 / most`,
      headings: [
        ...['ticks', 'Completed', 'manifests', 'to opened', 'to first task', 'to Completed'],
        ...['events', 'actions', 'statements', ...useHeadings],
      ],
      rows: found.ticks.map(tickRow),
    },
    {
      title: 'Beside that',
      headings: ['what', 'figure'],
      rows: [
        ['exports created over HTTP, a second', number(creation?.per_second ?? null)],
        ['longest history, events', `${String(largest_history.events)} (${largest_history.workflow_id})`],
        ['state of the backfill, bytes', String(backfill.backfill_state_bytes)],
        ['time for late transactions before each run, seconds', number(found.settle_seconds)],
        ['cores, load before', `${String(machine.cpus)}, ${load.before.toFixed(2)}`],
      ],
    },
  ];
}
