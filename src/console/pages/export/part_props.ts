import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';

/** What a part of the page is given. */
export interface PartProps {
  readonly found: BatchExportResponse;
  readonly reload: () => Promise<void>;
}
