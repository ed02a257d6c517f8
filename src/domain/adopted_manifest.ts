import type { Model } from './batch_export.ts';
import type { EarlierGenerations } from './earlier_generations.ts';
import type { CompletedFile, ExportedFile } from './exported_files.ts';
import type { Fingerprint } from './fingerprint.ts';

/** A manifest of the bucket that the journal does not know as the current one of its interval. */
export interface AdoptedManifest extends Pick<EarlierGenerations, 'kept' | 'earlier'> {
  /** The run that wrote it. The journal may not know it. */
  readonly run_id: string;
  readonly generation: number;
  readonly model: Model;
  /** The config of its files. If the journal lacks it, that of the run which found the manifest. */
  readonly config_version: number;
  readonly settled: boolean;
  readonly files: readonly ExportedFile[];
  readonly rejected_file: Omit<ExportedFile, 'first' | 'last'> | null;
  readonly source_rows: number;
  readonly fingerprint: Fingerprint;
  readonly encoder: string;
  /** When the manifest was written, ISO 8601. */
  readonly created_at: string;
  /** The generation with which the run that found it continues, above this one. */
  readonly raised_to: number;
}

/** The files of an adopted manifest, which does not say what was rejected or when a lifecycle rule deletes them. */
export const adoptedFiles = ({ files }: Pick<AdoptedManifest, 'files'>): CompletedFile[] =>
  files.map((file) => ({ ...file, rejected: 0, expires_at: null }));
