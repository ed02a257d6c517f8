import type { Expirations } from './expirations.ts';
import type { LoadedManifest } from './manifests.ts';
import type { RangeContext } from './ranges.ts';
import type { VerifiedRow } from './row.ts';
import type { SourceRows } from './source_rows.ts';
import type { FindingCollector } from './finding_collector.ts';

/** Dependencies for checking manifests. */
export interface CheckContext extends RangeContext {
  readonly source: SourceRows;
  readonly deep: boolean;
  readonly fast: boolean;
  readonly expirations: Expirations;
  readonly signal: AbortSignal;
}

/** The result of checking a manifest. */
export interface ManifestCheck {
  readonly found: LoadedManifest;
  readonly collector: FindingCollector;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number | null;
  /** Whether its files contain the keys of the rows. */
  readonly hasKeys: boolean;
  /** Whether its rows have to be sorted before they can be compared. */
  readonly disordered: boolean;
  /** Rows that belong to another interval. */
  readonly misplacedRows: readonly VerifiedRow[];
}
