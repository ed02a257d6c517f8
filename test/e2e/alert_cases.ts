/** Series in which an alert is true, in the notation of `promtool test rules`, and the labels and value of its result. */
interface AlertCase {
  readonly alert: string;
  readonly when: string;
  readonly series: Readonly<Record<string, string>>;
  readonly result: { readonly labels: string; readonly value: number };
}

const constant = (value: number): string => `${value}x30`;

/** Series of a deployment in which no alert is true. Two servers report the state of exports. */
export const healthySeries: Readonly<Record<string, string>> = {
  'exportd_export_condition{interval="hour",severity="ok",cause="ok",instance="one"}': constant(3),
  'exportd_export_condition{interval="hour",severity="ok",cause="ok",instance="two"}': constant(3),
  'exportd_export_condition{interval="day",severity="ok",cause="paused",instance="one"}': constant(1),
  'exportd_export_condition{interval="day",severity="error",cause="no_worker",instance="one"}': constant(1),
  'exportd_unavailable_destinations{instance="one"}': constant(0),
  'exportd_unsettled_intervals{interval="hour",instance="one"}': constant(0),
  'exportd_differing_intervals{interval="hour",outcome="rows_missing",instance="one"}': constant(0),
  'exportd_comparison_overdue_seconds{interval="hour",instance="one"}': constant(600),
  'exportd_workers{queue="control",instance="one"}': constant(1),
  'exportd_dependency_up{dependency="temporal",instance="one"}': constant(1),
  // Twenty minutes after the start, the time at which the expressions are evaluated.
  'exportd_reconciler_last_pass_timestamp_seconds{reconciler="runs",instance="worker"}': constant(1_170),
  'exportd_queued_task_age_seconds{queue="export",instance="one"}': constant(0),
};

/** One case for each alert; each replaces series of a healthy deployment. */
export const alertCases: readonly AlertCase[] = [
  {
    alert: 'ExportdBehind',
    when: 'an hour is late',
    series: {
      'exportd_export_condition{interval="hour",severity="warning",cause="behind",instance="two"}':
        constant(2),
    },
    result: { labels: '{interval="hour"}', value: 2 },
  },
  {
    alert: 'ExportdExportError',
    when: 'the source has lost rows',
    series: {
      'exportd_export_condition{interval="hour",severity="error",cause="held",instance="one"}': constant(1),
    },
    result: { labels: '{cause="held", interval="hour", severity="error"}', value: 1 },
  },
  {
    alert: 'ExportdHoles',
    when: 'a range between two backfills was never exported',
    series: {
      'exportd_export_condition{interval="day",severity="warning",cause="holes",instance="one"}': constant(1),
    },
    result: { labels: '{cause="holes", interval="day", severity="warning"}', value: 1 },
  },
  {
    alert: 'ExportdRunsRetried',
    when: 'runs of an export are retried',
    series: {
      'exportd_export_condition{interval="hour",severity="warning",cause="retrying",instance="one"}':
        constant(1),
    },
    result: { labels: '{cause="retrying", interval="hour", severity="warning"}', value: 1 },
  },
  {
    alert: 'ExportdDestinationUnavailable',
    when: 'a bucket does not respond',
    series: { 'exportd_unavailable_destinations{instance="one"}': constant(2) },
    result: { labels: '{}', value: 2 },
  },
  {
    alert: 'ExportdOperatorFault',
    when: 'the source lacks a relation',
    series: { 'exportd_operator_faults{type="UndefinedTable",dependency="",instance="one"}': constant(1) },
    result: { labels: '{type="UndefinedTable"}', value: 1 },
  },
  {
    alert: 'ExportdUnsettled',
    when: 'a transaction of the source is open',
    series: { 'exportd_unsettled_intervals{interval="hour",instance="one"}': constant(2) },
    result: { labels: '{interval="hour"}', value: 2 },
  },
  {
    alert: 'ExportdVerifyFailed',
    when: 'files differ from the source',
    series: {
      'exportd_differing_intervals{interval="hour",outcome="rows_missing",instance="one"}': constant(1),
      'exportd_differing_intervals{interval="hour",outcome="both",instance="one"}': constant(2),
    },
    result: { labels: '{interval="hour"}', value: 3 },
  },
  {
    alert: 'ExportdComparisonsBehind',
    when: 'the source has more rows than may be compared',
    series: { 'exportd_comparison_overdue_seconds{interval="hour",instance="two"}': constant(90_000) },
    result: { labels: '{}', value: 90_000 },
  },
  {
    alert: 'ExportdNoWorker',
    when: 'no worker polls',
    series: { 'exportd_workers{queue="control",instance="one"}': constant(0) },
    result: { labels: '{}', value: 0 },
  },
  {
    alert: 'ExportdNoWorker',
    when: 'no server reports workers',
    series: { 'exportd_workers{queue="control",instance="one"}': '_x30' },
    result: { labels: '{queue="control"}', value: 1 },
  },
  {
    alert: 'ExportdDependencyDown',
    when: 'Temporal does not respond',
    series: { 'exportd_dependency_up{dependency="temporal",instance="one"}': constant(0) },
    result: { labels: '{dependency="temporal"}', value: 0 },
  },
  {
    alert: 'ExportdNotReconciling',
    when: 'the last pass was 20 minutes ago',
    series: {
      'exportd_reconciler_last_pass_timestamp_seconds{reconciler="runs",instance="worker"}': constant(0),
    },
    result: { labels: '{reconciler="runs"}', value: 1_200 },
  },
  {
    alert: 'ExportdQueueWaiting',
    when: 'a task waits for six minutes',
    series: { 'exportd_queued_task_age_seconds{queue="export",instance="one"}': constant(360) },
    result: { labels: '{queue="export"}', value: 360 },
  },
];

/** A fault, the series in which a deployment has it for 20 minutes, and the alerts that ring then: one, or none. */
interface FaultCase {
  readonly fault: string;
  readonly series: Readonly<Record<string, string>>;
  readonly alerts: readonly string[];
}

const condition = (severity: string, cause: string, values: string): Readonly<Record<string, string>> => ({
  [`exportd_export_condition{interval="hour",severity="${severity}",cause="${cause}",instance="one"}`]:
    values,
});
const absent = '_x30';

export const faultCases: readonly FaultCase[] = [
  {
    fault: 'the source rejects the login',
    series: {
      'exportd_dependency_up{dependency="source",instance="one"}': constant(0),
      'exportd_operator_faults{type="InvalidAuthorization",dependency="source",instance="one"}': constant(1),
      ...condition('error', 'source_unavailable', constant(3)),
    },
    alerts: ['ExportdDependencyDown'],
  },
  {
    fault: 'Temporal does not respond',
    series: {
      'exportd_dependency_up{dependency="temporal",instance="one"}': constant(0),
      'exportd_operator_faults{type="TemporalUnavailable",dependency="temporal",instance="one"}': constant(1),
      'exportd_workers{queue="control",instance="one"}': absent,
      'exportd_reconciler_last_pass_timestamp_seconds{reconciler="runs",instance="worker"}': constant(0),
      ...condition('error', 'temporal_unavailable', constant(3)),
    },
    alerts: ['ExportdDependencyDown'],
  },
  {
    fault: 'the control database does not respond',
    series: {
      'exportd_dependency_up{dependency="control_database",instance="one"}': constant(0),
      'exportd_unavailable_destinations{instance="one"}': absent,
      ...condition('ok', 'ok', absent),
    },
    alerts: ['ExportdDependencyDown'],
  },
  {
    fault: 'no worker runs',
    series: {
      'exportd_workers{queue="control",instance="one"}': constant(0),
      'exportd_operator_faults{type="NoWorker",dependency="workers",instance="one"}': constant(1),
      'exportd_reconciler_last_pass_timestamp_seconds{reconciler="runs",instance="worker"}': absent,
      'exportd_queued_task_age_seconds{queue="export",instance="one"}': constant(900),
      ...condition('error', 'no_worker', constant(3)),
    },
    alerts: ['ExportdNoWorker'],
  },
  {
    fault: 'a bucket of a hundred exports does not respond',
    series: {
      'exportd_unavailable_destinations{instance="one"}': constant(1),
      ...condition('error', 'destination_unavailable', constant(100)),
    },
    alerts: ['ExportdDestinationUnavailable'],
  },
  {
    fault: 'a run fails for good',
    series: {
      'exportd_runs_total{status="Failed",instance="worker"}': '0x5 1x25',
      ...condition('error', 'failed', '0x5 1x25'),
    },
    alerts: ['ExportdExportError'],
  },
  {
    fault: 'an interval is held',
    series: condition('error', 'held', '0x5 1x25'),
    alerts: ['ExportdExportError'],
  },
  {
    fault: 'the source has lost rows that were exported',
    series: {
      'exportd_differing_intervals{interval="hour",outcome="rows_missing",instance="one"}': '0x5 1x25',
      ...condition('error', 'differs', '0x5 1x25'),
    },
    alerts: ['ExportdVerifyFailed'],
  },
  {
    fault: 'rows arrive late, and are exported again within minutes',
    series: {
      'exportd_differing_intervals{interval="hour",outcome="rows_added",instance="one"}': '0x8 1x6 0x16',
    },
    alerts: [],
  },
  {
    fault: 'a run fails, and succeeds when it is retried',
    series: {
      'exportd_runs_total{status="FailedRetryable",instance="worker"}': '0x10 1x20',
      ...condition('warning', 'retrying', '0x10 1x8 0x12'),
    },
    alerts: [],
  },
  {
    fault: 'a bucket and the source do not respond for a minute',
    series: {
      'exportd_unavailable_destinations{instance="one"}': '0x18 1x1 0x11',
      'exportd_dependency_up{dependency="source",instance="one"}': '1x18 0x1 1x11',
      ...condition('error', 'destination_unavailable', '0x18 1x1 0x11'),
    },
    alerts: [],
  },
];
