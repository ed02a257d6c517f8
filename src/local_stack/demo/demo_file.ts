import { readFileSync, rmSync } from 'node:fs';
import { writeFileAtomically, type DataFolder } from '../data_folder.ts';

/** Content of `.exportd/demo.json`: addresses and keys. The file exists while the stack is ready. */
export interface ServiceFile {
  readonly base_url: string;
  readonly project_id: number;
  readonly api_key: string;
  readonly s3_endpoint: string;
  readonly s3_access_key_id: string;
  readonly s3_secret_access_key: string;
  readonly database_url: string;
  readonly temporal_address: string;
  readonly temporal_namespace: string;
  readonly temporal_ui: string | null;
  /** Of its `/livez`, `/readyz` and `/metrics`. */
  readonly worker_url: string;
  readonly worker_pid: number;
}

/** The same, with what the demo exports. */
export interface DemoFile extends ServiceFile {
  readonly batch_export_id: string;
  readonly bucket: string;
}

/** What the demo has done in earlier starts. */
export interface DemoState {
  readonly project_id?: number;
  readonly key_id?: string;
  readonly api_key?: string;
  /** Time of the newest row of the data. */
  readonly anchor?: string;
  /** The project that has the warehouse table. */
  readonly tables_project_id?: number;
  readonly batch_export_id?: string;
  readonly backfilled?: boolean;
  /** Whether the exports of the folder read a database of the user. */
  readonly own_source?: boolean;
}

const ownerOnly = 0o600;

/** Path of the file with the addresses and keys. */
export const demoFilePath = (folder: DataFolder): string => folder.inside('demo.json');

export const writeDemoFile = (folder: DataFolder, demo: ServiceFile): void =>
  writeFileAtomically(demoFilePath(folder), `${JSON.stringify(demo, null, 2)}\n`, ownerOnly);

export const removeDemoFile = (folder: DataFolder): void => rmSync(demoFilePath(folder), { force: true });

const statePath = (folder: DataFolder): string => folder.inside('demo-state.json');

/** The state of the last start; empty at the first. */
export function readDemoState(folder: DataFolder): DemoState {
  try {
    return JSON.parse(readFileSync(statePath(folder), 'utf8')) as DemoState;
  } catch {
    return {};
  }
}

/** Adds to the state. @returns The whole state. */
export function saveDemoState(folder: DataFolder, more: DemoState): DemoState {
  const state = { ...readDemoState(folder), ...more };
  writeFileAtomically(statePath(folder), JSON.stringify(state, null, 2), ownerOnly);
  return state;
}
