import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '../../src/journal/database.ts';

/** A measurement of a worker and the source. */
export interface Sample {
  /** Resident memory of the worker, in bytes. */
  readonly memory: number;
  /** Age of exportd's oldest open transaction, in seconds; 0 when none is open. */
  readonly transactionAge: number;
}

/** Samples a worker and exportd's transactions several times a second until it is stopped. */
interface Sampling {
  stop(): Promise<readonly Sample[]>;
}

const pollMs = 100;

/** Starts to sample the worker process. */
export function startSampling(pool: Pool, pid: number): Sampling {
  const samples: Sample[] = [];
  const stopping = new AbortController();
  const sampling = (async () => {
    while (!stopping.signal.aborted) {
      samples.push({ memory: residentBytes(pid), transactionAge: await oldestTransaction(pool) });
      await delay(pollMs);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await sampling;
      return samples;
    },
  };
}

function residentBytes(pid: number): number {
  const [, kilobytes] =
    /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}

async function oldestTransaction(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ age: number }>(
    `select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 as age from pg_stat_activity
     where datname = current_database() and application_name = 'exportd' and pid <> pg_backend_pid()
       and backend_type = 'client backend'`,
  );
  return rows[0]?.age ?? 0;
}
