import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFileAtomically } from './data_folder.ts';
import { acquireLock, LockHeld } from './lock.ts';

/** Whether this process can listen on a port of the loopback address. */
export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });

/** Below the ephemeral ports: no outgoing connection can occupy a port between two starts. */
const range = { first: 15_000, last: 32_000 };

/**
 * Reserves a port for this process until it ends. Seconds pass between the choice of a port and the server that listens
 * on it: without a reservation, a process of another clone or test can choose the same port.
 * @returns whether no other process has reserved it.
 */
function reservePort(port: number): boolean {
  const folder = join(tmpdir(), `exportd-ports-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true });
  try {
    acquireLock(join(folder, String(port)));
    return true;
  } catch (error) {
    if (error instanceof LockHeld) return error.holder.pid === process.pid;
    throw error;
  }
}

const isUsable = async (port: number): Promise<boolean> => reservePort(port) && (await isPortFree(port));

async function findPort(taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = range.first + Math.floor(Math.random() * (range.last - range.first));
    if (!taken.has(port) && (await isUsable(port))) return port;
  }
}

function readPorts(file: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/**
 * Assigns each server the port that the file stores, or a new one if there is none or another program uses it. The ports
 * stay reserved for this process until it ends.
 */
export async function assignPorts<Name extends string>(
  file: string,
  names: readonly Name[],
): Promise<Record<Name, number>> {
  const saved = readPorts(file);
  const assigned = new Map<Name, number>();
  for (const name of names) {
    const port = saved[name];
    const taken = new Set(assigned.values());
    const usable = typeof port === 'number' && !taken.has(port) && (await isUsable(port));
    assigned.set(name, usable ? port : await findPort(taken));
  }
  const ports = Object.fromEntries(assigned) as Record<Name, number>;
  writeFileAtomically(file, JSON.stringify({ ...saved, ...ports }));
  return ports;
}
