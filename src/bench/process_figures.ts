import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks in a second, as every Linux shows them to programs. */
const ticksPerSecond = 100;

/** CPU seconds, user and system, that a process and all its threads have used; null where the system does not tell. */
export function cpuSecondsOf(pid: number): number | null {
  const fields = statFields(pid);
  return fields === null ? null : (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Memory of a process in bytes. */
export interface ProcessMemory {
  readonly resident: number;
  /** The most that was resident since the process began, or since `resetPeakMemory`. */
  readonly peak: number;
}

/** Memory of a process; null where the system does not tell. */
export function memoryOf(pid: number): ProcessMemory | null {
  const text = read(pid, 'status');
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text ?? '')?.[1]);
  const [resident, peak] = [kibibytes('VmRSS') * 1_024, kibibytes('VmHWM') * 1_024];
  return Number.isNaN(resident) || Number.isNaN(peak) ? null : { resident, peak };
}

/** Lets the peak begin anew from what is resident now; where that is not allowed, the peak stays that of all time. */
export function resetPeakMemory(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux, or a container that forbids it: a peak of all time is only ever too high.
  }
}

/** What a process and all that it started use. */
export interface TreeUse {
  /** User and system, of children that have ended too. */
  readonly cpu_seconds: number;
  /** Pages that several of them share are counted once; null where they may not be looked at. */
  readonly memory_bytes: number | null;
}

/** Sums over a process and its descendants; null where the system does not tell, or when it has ended. */
export function treeUseOf(pid: number): TreeUse | null {
  if (read(pid, 'stat') === null) return null;
  const children = childrenOfAll();
  const tree = [pid];
  // It grows while it is walked.
  for (const parent of tree) tree.push(...(children.get(parent) ?? []));
  let ticks = 0;
  let memory: number | null = 0;
  for (const member of tree) {
    const fields = statFields(member);
    if (fields === null) continue;
    ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    const kibibytes = Number(/^Pss:\s+(\d+) kB/m.exec(read(member, 'smaps_rollup') ?? '')?.[1]);
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

/** The fields after the name, which may hold spaces and brackets. */
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
