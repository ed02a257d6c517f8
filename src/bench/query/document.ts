import type { BenchDocument, Figures, Skipped } from '../document.ts';

/** One insight, by the product and by SQL that was written for it by hand. */
export interface InsightResult {
  /** Milliseconds of the hand-written statement, its transaction included. */
  readonly floor_ms: Figures;
  /** Milliseconds of the product on a connection: what it asks of the catalogue, compiling, statements, the answer. */
  readonly product_ms: Figures;
  /** Median over the repeats of the product's time by that of the floor. */
  readonly ratio: number;
  /** Whether both gave the same answer. */
  readonly agrees: boolean;
  /** Where they differ, the beginning of each answer as JSON. */
  readonly difference: { readonly floor: string; readonly product: string } | null;
}

/** What the bench of queries found. */
export interface QueryBenchDocument {
  readonly started_at: string;
  readonly seconds: number;
  readonly machine: BenchDocument['machine'];
  /** Load average of the last minute before and after the measurements. */
  readonly load: { readonly before: number; readonly after: number };
  readonly events: number;
  readonly days: number;
  readonly persons: number;
  readonly repeat: number;
  readonly insights: readonly ({ readonly name: string } & (InsightResult | Skipped))[];
}
