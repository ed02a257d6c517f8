/** SQL condition: the run failed, and is not held until a person decides. */
export const isFailedRun = (run = 'batch_export_runs'): string =>
  `(${run}.status in ('Failed', 'FailedRetryable', 'TimedOut') and not ${run}.held)`;
