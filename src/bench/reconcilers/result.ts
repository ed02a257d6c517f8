import type { PassResult } from '../../temporal/reconcilers/statistics.ts';
import type { Measurement } from '../result.ts';

/** One pass of every reconciler, one after another. */
export interface MeasuredPass {
  readonly seconds: number;
  readonly requests: number;
  readonly reconcilers: Readonly<Record<string, PassResult>>;
}

/** The result of `exportd bench reconcilers`. */
export interface ReconcilersBenchResult extends Measurement {
  readonly exports: number;
  readonly runs: number;
  /** From an empty namespace until every execution was started: what a lost namespace costs. */
  readonly recovery: { readonly seconds: number; readonly requests: number; readonly passes: number };
  /** Passes that found nothing to repair. */
  readonly steady: readonly MeasuredPass[];
}
