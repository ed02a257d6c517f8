import type { Destination } from '../destination/destination.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { ExportDependencies } from './export_dependencies.ts';

/** Context of an attempt at a range, with its destination opened. */
export interface RangeContext {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  readonly destination: Destination;
  readonly selection: RowSelection;
  /** Reported with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}
