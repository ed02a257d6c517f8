import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import type { ApiClient } from '../../local_stack/demo/api_client.ts';
import type { ScratchStack } from '../scratch_stack.ts';

/** Dependencies of the measurements with a number of workers. */
export interface WorkersScratch {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: Client;
  readonly settings: Settings;
  /** Client of the project whose events are exported. */
  readonly api: ApiClient;
  readonly workerPids: readonly number[];
  readonly signal: AbortSignal;
}
