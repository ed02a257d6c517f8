/** The keys of objects: the names of files, manifests, rejected rows and tests. */
import { models } from '../domain/batch_export.ts';
import type { RunSpec } from '../domain/run_state.ts';
import {
  constantPrefix,
  fileFolder,
  type FolderFields,
  joinSegments,
  renderPrefix,
  reservedFolders,
  tableRoot,
} from './prefix.ts';

/** Identifies a file of an interval. */
export interface FileIdentity {
  /** The generation: how often the interval was exported, from 1. */
  readonly generation: number;
  /** The range of the interval, from 0, if several are exported in parallel; else null. */
  readonly range: number | null;
  /** The number of the file, from 0, if files have a maximum size; else null. */
  readonly file: number | null;
  /** Makes the key unique where the store has no conditional writes; else null. */
  readonly mark: string | null;
}

/** The fields of a run that determine the keys of its interval. */
export type KeySpec = Pick<
  RunSpec,
  'batch_export_id' | 'model' | 'data_interval_start' | 'data_interval_end'
>;

/** S3's limit of the key length in bytes of UTF-8. */
const maxKeyBytes = 1_024;

/** `20261101T100000Z`: sorts by time and needs no escaping. */
const compactTime = (time: string): string => new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');

const intervalName = (spec: KeySpec): string =>
  `${compactTime(spec.data_interval_start)}-${compactTime(spec.data_interval_end)}`;

/**
 * The key of a data file: `<prefix>/<start>-<end>[-[<range>.]<file>][-g<generation>][-<mark>].<extension>`. Generations
 * after the first include their number, so no key is written twice.
 */
export const fileKey = (prefix: string, spec: KeySpec, file: FileIdentity, extension: string): string =>
  intervalKey(prefix, spec, `${fileSuffix(file)}${generationSuffix(file)}.${extension}`);

/** Matches the keys of a file, with any mark or none. */
export function fileKeyPattern(
  prefix: string,
  spec: KeySpec,
  file: Omit<FileIdentity, 'mark'>,
  extension: string,
): { readonly commonPrefix: string; matches: (key: string) => boolean } {
  const suffix = `.${extension}`;
  const commonPrefix = fileKey(prefix, spec, { ...file, mark: null }, extension).slice(0, -suffix.length);
  return {
    commonPrefix,
    matches: (key) =>
      key.startsWith(commonPrefix) &&
      key.endsWith(suffix) &&
      /^(-[0-9a-f]{8})?$/.test(key.slice(commonPrefix.length, -suffix.length)),
  };
}

function intervalKey(prefix: string, spec: KeySpec, suffix: string): string {
  const start = compactTime(spec.data_interval_start);
  const path = renderPrefix(prefix, {
    year: start.slice(0, 4),
    month: start.slice(4, 6),
    day: start.slice(6, 8),
    hour: start.slice(9, 11),
    minute: start.slice(11, 13),
    second: start.slice(13, 15),
    data_interval_start: start,
    data_interval_end: compactTime(spec.data_interval_end),
    table: spec.model,
  });
  return joinSegments(path, `${intervalName(spec)}${suffix}`);
}

function fileSuffix({ range, file }: FileIdentity): string {
  if (range !== null) return `-${range}.${file ?? 0}`;
  return file === null ? '' : `-${file}`;
}

const generationSuffix = ({ generation, mark }: Pick<FileIdentity, 'generation' | 'mark'>): string =>
  `${generation > 1 ? `-g${generation}` : ''}${mark === null ? '' : `-${mark}`}`;

/** The key of an interval's manifest. It does not depend on the variables of the prefix. */
export const manifestKey = (prefix: string, spec: KeySpec): string =>
  manifestFolder(prefix, spec.batch_export_id) + `${intervalName(spec)}.json`;

/** The prefix of the keys of all manifests of an export. */
export const manifestFolder = (prefix: string, batchExportId: string): string =>
  `${joinSegments(constantPrefix(prefix), reservedFolders.manifests, batchExportId)}/`;

/** The key of the object that a destination test writes and deletes. */
export const testKey = (prefix: string, testId: string): string =>
  joinSegments(constantPrefix(prefix), reservedFolders.tests, testId);

/** A key below the prefix that nothing is written to: the credentials may be restricted to it. */
export const probeKey = (prefix: string): string =>
  joinSegments(constantPrefix(prefix), reservedFolders.probes);

/** The largest number in a key, for checking key lengths. */
const maxNumber = 999_999;
const longestExtension = 'jsonl.zst';

/** Returns why keys under this prefix may exceed S3's limit; null if they fit. */
export function keyLengthProblem(prefix: string): string | null {
  const longest: KeySpec = {
    batch_export_id: '00000000-0000-0000-0000-000000000000',
    model: models.reduce((one, other) => (other.length > one.length ? other : one)),
    data_interval_start: '2026-11-01T10:00:00Z',
    data_interval_end: '2026-11-01T11:00:00Z',
  };
  const file = { generation: maxNumber, range: maxNumber, file: maxNumber, mark: 'ffffffff' };
  const keys = [
    fileKey(prefix, longest, file, longestExtension),
    rejectedKey({ prefix }, longest, file),
    manifestKey(prefix, longest),
  ];
  const length = Math.max(...keys.map((key) => Buffer.byteLength(key)));
  return length > maxKeyBytes
    ? `The prefix is too long: keys would have up to ${length} bytes. S3 allows ${maxKeyBytes}.`
    : null;
}

/** The key of the file with the rejected rows of a generation. */
export function rejectedKey(
  fields: FolderFields,
  spec: KeySpec,
  file: Pick<FileIdentity, 'generation' | 'mark'>,
): string {
  const key = intervalKey(fileFolder(fields), spec, `${generationSuffix(file)}-rejected.jsonl`);
  const root = tableRoot(fields.prefix, spec.model);
  const folder = joinSegments(root, reservedFolders.rejectedRows);
  return root === '' ? `${folder}/${key}` : `${folder}${key.slice(root.length)}`;
}
