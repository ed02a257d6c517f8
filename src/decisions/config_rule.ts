import type { Settings } from '../config/settings.ts';
import type { Connection } from '../journal/database.ts';
import type { ExportWithConfig } from './exports_with_config.ts';

/** What an optional capability asks of the configs that use it, beside what all exports need. */
export interface ConfigRule {
  /**
   * Checks a config in the transaction that saves it.
   * @param own the export as it would be saved
   * @param exports the live exports of its project, with this one
   * @throws CommandRejected with the invalid field
   */
  readonly check: (
    connection: Connection,
    own: ExportWithConfig,
    exports: readonly ExportWithConfig[],
  ) => Promise<void>;
  /** How long files stay after their target no longer lists them, in milliseconds. */
  readonly fileRetentionMs: (settings: Settings) => number;
}
