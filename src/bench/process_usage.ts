import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks per second in /proc, the same on every Linux. */
const ticksPerSecond = 100;

/** User and system CPU seconds of a process with all its threads; null without /proc. */
export function cpuSecondsOf(pid: number): number | null {
  const fields = statFields(pid);
  return fields === null ? null : (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Memory of a process in bytes. */
export interface ProcessMemory {
  readonly resident: number;
  /** Maximum resident memory since the start of the process, or since `resetPeakMemory`. */
  readonly peak: number;
}

/** Memory of a process; null without /proc. */
export function memoryOf(pid: number): ProcessMemory | null {
  const text = read(pid, 'status');
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')?.[1]);
  const [resident, peak] = [kibibytes('VmRSS') * 1_024, kibibytes('VmHWM') * 1_024];
  return Number.isNaN(resident) || Number.isNaN(peak) ? null : { resident, peak };
}

/** Resets the peak to the current resident memory, if the system allows it. */
export function resetPeakMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or a container that forbids it. The peak since the start is only too high.
  }
}

/** Resources of a process and its descendants. */
export interface ProcessTreeUsage {
  /** User and system time, including children that have exited. */
  readonly cpu_seconds: number;
  /** Shared pages are counted once. Null when the system denies access. */
  readonly memory_bytes: number | null;
}

/** Sums over a process and its descendants; null when it has exited or without /proc. */
export function usageOfTree(pid: number): ProcessTreeUsage | null {
  if (read(pid, 'stat') === null) return null;
  const children = childrenOfAll();
  const tree = [pid];
  // The array grows during the iteration.
  for (const parent of tree) tree.push(...(children.get(parent) ?? []));
  let ticks = 0;
  let memory: number | null = 0;
  for (const processId of tree) {
    const fields = statFields(processId);
    if (fields === null) continue;
    ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    const kibibytes = Number(/^Pss:\s+(\d+) kB/m.exec(read(processId, 'smaps_rollup') ?? '')?.[1]);
    memory = memory === null || Number.isNaN(kibibytes) ? null : memory + kibibytes * 1_024;
  }
  return { cpu_seconds: ticks / ticksPerSecond, memory_bytes: memory };
}

/** The children of every process. */
function childrenOfAll(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statFields(Number(name)) : null;
    if (fields === null) continue;
    const parent = Number(fields[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  return children;
}

/** The fields after the name, which may contain spaces and parentheses. */
function statFields(pid: number): string[] | null {
  const text = read(pid, 'stat');
  return text === null ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function read(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return null;
  }
}
