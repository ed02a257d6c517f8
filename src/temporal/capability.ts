import type { Client } from '@temporalio/client';
import type { JobDependencies } from '../jobs/jobs.ts';
import type { Subscriber } from '../journal/journal.ts';
import type { Reconciler } from './reconcilers/check_executions.ts';

/** What a capability is made of. */
export interface CapabilityDependencies extends JobDependencies {
  readonly client: Client;
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
