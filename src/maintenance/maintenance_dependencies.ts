import type { Policies } from '../decisions/create_run.ts';
import type { OpenLocation } from '../destination/open_destination.ts';
import type { ReadSelection } from '../destination/config_versions.ts';
import type { Journal } from '../journal/journal.ts';
import type { Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';

/** Dependencies of the maintenance tasks. */
export interface MaintenanceDependencies {
  readonly journal: Journal;
  readonly policies: Pick<Policies, 'maintenance'>;
  readonly source: Source;
  readonly readSelection: ReadSelection;
  readonly openLocation: OpenLocation;
  readonly schedules: {
    /** Signals a stored command to its schedule, which is started if it does not run. */
    signal(command: {
      readonly batch_export_id: string;
      readonly name: string;
      readonly id: string;
    }): Promise<void>;
  };
  readonly logger: Logger;
}
