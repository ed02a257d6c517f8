import type { DataFolder } from './data_folder.ts';
import { readDemoState, saveDemoState } from './demo/demo_file.ts';
import { LaunchError } from './launch_error.ts';

/**
 * Remembers whether the exports of a data folder read a database of the user. The exports of one source would miss all
 * of their rows in the other one.
 * @throws LaunchError if the folder was started with the other source
 */
export function requireSameSource(folder: DataFolder, hasOwnSource: boolean): void {
  const { own_source, project_id } = readDemoState(folder);
  if (project_id !== undefined && (own_source ?? false) !== hasOwnSource)
    throw new LaunchError(
      hasOwnSource
        ? `The exports of ${folder.path} read the demo data. Set EXPORTD_DATA_DIR to another folder to read the database of SOURCE_DATABASE_URL.`
        : `The exports of ${folder.path} read your database. Set SOURCE_DATABASE_URL again, or set EXPORTD_DATA_DIR to another folder for the demo.`,
    );
  saveDemoState(folder, { own_source: hasOwnSource });
}
