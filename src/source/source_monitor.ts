import type pg from 'pg';

/** What monitoring reads of a pool. */
export type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>;

/** What monitoring needs of a source. */
export interface SourceMonitor {
  /** Opens a transaction and commits it. Rejects when the source does not respond or rejects the login. */
  ping(signal?: AbortSignal): Promise<void>;
  /** The pools by what their connections do: read `pages`, `counts` or `checks` of the barrier. */
  readonly pools: Readonly<Record<'pages' | 'counts' | 'checks', PoolCounts>>;
}
