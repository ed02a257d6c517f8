import type { DeferredStep, PreparedRun } from '../decisions/deferred_steps.ts';

/** Rows that are read and sent within a moment, and nearly always in one request. */
export const smallRunRows = 1_000;

/** A counted run of few rows that replaces nothing, for the step that completes it in this process. */
export interface SmallRun extends PreparedRun {
  /** What records its count, which is among the deferred steps; null if it is recorded. */
  readonly count: DeferredStep | null;
}
