import type { BatchExportResponse } from '../../../http/schemas/batch_export.ts';

/** What a part of the page is given. */
export interface PartProps {
  readonly found: BatchExportResponse;
  readonly reload: () => Promise<void>;
}
