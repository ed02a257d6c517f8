import type { RunSpec } from '../domain/run.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { readPublicConfig } from './config_versions.ts';
import { followsSource } from './missing_rows_field.ts';

/** Whether a run may publish fewer rows than the manifest that it replaces. */
export type MayShrink = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version' | 'allow_shrink'>,
) => Promise<boolean>;

/**
 * Creates a function that decides by the request of the run (`allow_shrink`) and by its config version
 * (`on_missing_rows: 'follow'`). It throws ConfigVersionNotFound.
 */
export const createMayShrink =
  (database: Pool | Connection): MayShrink =>
  async ({ batch_export_id, config_version, allow_shrink }) =>
    allow_shrink || followsSource((await readPublicConfig(database, batch_export_id, config_version)).config);
