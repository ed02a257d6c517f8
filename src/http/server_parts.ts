import type { Client } from '@temporalio/client';
import type { Registry } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { PoolCounts } from '../source/source_connection.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Resource } from './resource.ts';
import type { FaultSender } from '../failures/fault_messages.ts';

/** What an optional capability gets of the server that it is started in. */
export interface ServerParts {
  readonly settings: Settings;
  readonly pool: Pool;
  readonly logger: Logger;
  readonly metrics: Registry;
  readonly client: Client;
  /** Makes a call to Temporal, which must settle before its connection is closed. */
  readonly track: <Result>(call: () => Promise<Result>) => Promise<Result>;
}

/** A resource with what it opened for the server. */
export interface StartedResource {
  readonly resource: Resource;
  /** Connections that metrics count, by name. */
  readonly pools?: Readonly<Record<string, PoolCounts>>;
  /** What tells the operator of faults. */
  readonly faultSender?: FaultSender | undefined;
  readonly close?: () => Promise<void>;
}
