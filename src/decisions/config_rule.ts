import type { Connection } from '../journal/database.ts';
import type { ExportWithConfig } from './exports_with_config.ts';

/**
 * What an optional capability asks of a config before it is saved, beside what all exports need. It is checked in the transaction
 * that saves the config.
 * @param own the export as it would be saved
 * @param exports the live exports of its project, with this one
 * @throws CommandRejected with the invalid field
 */
export type ConfigRule = (
  connection: Connection,
  own: ExportWithConfig,
  exports: readonly ExportWithConfig[],
) => Promise<void>;
