/** Connections to the source have a share for each project. */
import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import { type PoolCounts, SourceBusy, type SourceConnections } from './source_connection.ts';

/** Does work that uses one connection of a project's share, wherever that is. @throws SourceBusy */
type ProjectShares = <Result>(
  teamId: number,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
) => Promise<Result>;

/** A pool of connections of which each project uses a share. */
export interface SharedConnections {
  /** The pool, limited to the share of a project. @throws SourceBusy when none of them is free for too long */
  forProject(teamId: number): SourceConnections;
  readonly pool: PoolCounts;
  close(): Promise<void>;
}

/** A project uses at most this part of a pool. */
const projectShare = 1 / 3;

/**
 * How long a read waits for a connection of its project. Then it fails and is retried, so that it holds neither an
 * activity slot nor a workflow task that another project needs.
 */
const maxWaitMs = 10_000;

/**
 * Limits each project to a third of `size` connections, so that the slow statements of one leave connections to the
 * others. Waiting reads of a project are served in order of arrival.
 */
export function createProjectShares(size: number, waitMs = maxWaitMs): ProjectShares {
  const share = Math.max(1, Math.floor(size * projectShare));
  const permits = createKeyedSemaphore<number>({ perKey: share });
  return async (teamId, signal, work) => {
    const release = await permits.acquire(teamId, {
      ...(signal && { signal }),
      timeout: {
        ms: waitMs,
        error: () =>
          new SourceBusy(
            `All ${share} connections to the source that project ${teamId} may use at a time are busy (a third of EXPORTD_SOURCE_CONNECTIONS). Waiting until one is free.`,
          ),
      },
    });
    try {
      return await work();
    } finally {
      release();
    }
  };
}

/** Limits each project to its share of a pool of `size` connections. */
export function shareByProject(
  connections: SourceConnections,
  size: number,
  waitMs?: number,
): SharedConnections {
  const inShare = createProjectShares(size, waitMs);
  return {
    forProject: (teamId) => ({
      ...connections,
      read: (parameters, signal, work) =>
        inShare(teamId, signal, () => connections.read(parameters, signal, work)),
    }),
    pool: connections.pool,
    close: () => connections.close(),
  };
}
