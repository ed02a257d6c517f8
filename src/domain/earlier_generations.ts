import type { ExportedFile } from './exported_files.ts';

/** A published file of an earlier generation, which stays in the bucket. */
export interface EarlierFile extends Pick<ExportedFile, 'key' | 'rows' | 'bytes' | 'crc32'> {
  readonly generation: number;
}

/** What a run that publishes leaves of the generations before it. */
export interface EarlierGenerations {
  /** The generation that it replaces, if nothing of it is needed any more; null if its files stay or there is none. */
  readonly covers: number | null;
  /** Files that stay because their rows could not be compared. Readers do not need them. */
  readonly kept: readonly EarlierFile[];
  /** Files of persons that stay, because they may have the only state of a person. Readers need them. */
  readonly earlier: readonly EarlierFile[];
  /** Generations that stay in another bucket with their manifests, because this manifest can name no file there. */
  readonly elsewhere: readonly number[];
}

/** A run that replaces nothing leaves nothing. */
export const nothingEarlier: EarlierGenerations = { covers: null, kept: [], earlier: [], elsewhere: [] };
