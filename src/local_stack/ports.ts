import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { writeFileAtomically } from './data_folder.ts';

/** Whether this process could listen on a port of the loopback address now. */
export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });

/** Below the ports that systems hand to outgoing connections, so that none of these takes a port between two starts. */
const range = { first: 15_000, last: 32_000 };

async function findPort(taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = range.first + Math.floor(Math.random() * (range.last - range.first));
    if (!taken.has(port) && (await isPortFree(port))) return port;
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
 * Ports for servers, the same ones at every start: those kept in the file, and a new one where none is kept or
 * somebody else has taken it meanwhile.
 */
export async function keepPorts<Name extends string>(
  file: string,
  names: readonly Name[],
): Promise<Record<Name, number>> {
  const kept = readPorts(file);
  const chosen = new Map<Name, number>();
  for (const name of names) {
    const port = kept[name];
    const taken = new Set(chosen.values());
    const usable = typeof port === 'number' && !taken.has(port) && (await isPortFree(port));
    chosen.set(name, usable ? port : await findPort(taken));
  }
  const ports = Object.fromEntries(chosen) as Record<Name, number>;
  writeFileAtomically(file, JSON.stringify({ ...kept, ...ports }));
  return ports;
}
