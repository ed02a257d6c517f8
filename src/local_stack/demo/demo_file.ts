import { readFileSync, rmSync } from 'node:fs';
import { writeFileAtomically, type DataFolder } from '../data_folder.ts';

/** What `.exportd/demo.json` tells whoever wants to use the demo. It exists while everything answers. */
export interface DemoFile {
  readonly base_url: string;
  readonly project_id: number;
  readonly api_key: string;
  readonly batch_export_id: string;
  readonly bucket: string;
  readonly s3_endpoint: string;
  readonly s3_access_key_id: string;
  readonly s3_secret_access_key: string;
  readonly database_url: string;
  readonly temporal_address: string;
  readonly temporal_namespace: string;
  readonly temporal_ui: string | null;
  readonly worker_pid: number;
}

/** What the demo remembers between starts, so that no step is done twice. */
export interface DemoState {
  readonly project_id?: number;
  readonly key_id?: string;
  readonly api_key?: string;
  /** When the data were seeded. */
  readonly anchor?: string;
  /** The project that has the tables beside its events. */
  readonly tables_of?: number;
  readonly batch_export_id?: string;
  readonly backfilled?: boolean;
}

const ownerOnly = 0o600;

/** Where the demo's addresses and keys are written down. */
export const demoFilePath = (folder: DataFolder): string => folder.inside('demo.json');

/** Writes them down, once everything answers. */
export const writeDemoFile = (folder: DataFolder, demo: DemoFile): void =>
  writeFileAtomically(demoFilePath(folder), `${JSON.stringify(demo, null, 2)}\n`, ownerOnly);

/** Nothing answers any more, or not yet. */
export const removeDemoFile = (folder: DataFolder): void => rmSync(demoFilePath(folder), { force: true });

const statePath = (folder: DataFolder): string => folder.inside('demo-state.json');

/** The state that the last start left; empty at the first. */
export function readDemoState(folder: DataFolder): DemoState {
  try {
    return JSON.parse(readFileSync(statePath(folder), 'utf8')) as DemoState;
  } catch {
    return {};
  }
}

/** Adds to the state. @returns the whole. */
export function keepDemoState(folder: DataFolder, more: DemoState): DemoState {
  const state = { ...readDemoState(folder), ...more };
  writeFileAtomically(statePath(folder), JSON.stringify(state, null, 2), ownerOnly);
  return state;
}
