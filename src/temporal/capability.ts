import type { Client } from '@temporalio/client';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Subscriber } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Reconciler } from './reconcilers/check_executions.ts';

/** What a capability is made of. */
export interface CapabilityDependencies {
  readonly client: Client;
  readonly pool: Pool;
  readonly keyRing: KeyRing;
  readonly logger: Logger;
  readonly settings: Settings;
}

/** What an optional capability adds to the workers. What exports rows knows of none. */
export interface Capability {
  /** What follows the events of the journal in their transactions. */
  readonly subscribers: readonly Subscriber[];
  /** By their names in logs and metrics. */
  readonly reconcilers: Readonly<Record<string, Reconciler>>;
  /** Activities of the maintenance worker, and how many of them it runs at the same time. */
  readonly activities: object;
  readonly activitySlots: number;
}
