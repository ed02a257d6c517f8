/** The latest recorded failure of one type of error, and how many were recorded. */
export interface RecordedFailure {
  readonly recorded: number;
  /** ISO 8601. */
  readonly recorded_at: string;
}

/** The recorded failures of a run's attempts by type of error. */
export type FailedAttempts = Readonly<Record<string, RecordedFailure>>;

/** Failures of one type are recorded this far apart, in milliseconds. A run may fail every second for hours. */
const recordIntervalMs = 5 * 60_000;

/** Whether a failure of this type is to be recorded. `isShown`: the run still shows its latest failure. */
export function isFailureDue(
  failures: FailedAttempts,
  type: string,
  { isShown, now }: { readonly isShown: boolean; readonly now: Date },
): boolean {
  const latest = failures[type];
  return (
    latest === undefined ||
    !isShown ||
    now.getTime() - new Date(latest.recorded_at).getTime() >= recordIntervalMs
  );
}

/** Adds a recorded failure. */
export const withFailure = (failures: FailedAttempts, type: string, recorded_at: string): FailedAttempts => ({
  ...failures,
  [type]: { recorded: (failures[type]?.recorded ?? 0) + 1, recorded_at },
});
