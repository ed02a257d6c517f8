import { models } from '../../domain/batch_export.ts';
import type { FileIdentity, KeySpec } from '../destination.ts';
import { constantPrefix, renderPrefix } from './prefix.ts';

/** S3's limit of the key length in bytes of UTF-8. */
const maxKeyBytes = 1_024;

/** `20261101T100000Z`: sorts by time and needs no escaping. */
const compactTime = (time: string): string => new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');

const intervalName = (spec: KeySpec): string =>
  `${compactTime(spec.data_interval_start)}-${compactTime(spec.data_interval_end)}`;

const join = (...segments: readonly string[]): string =>
  segments.filter((segment) => segment !== '').join('/');

/**
 * The key of a data file: `<prefix>/<start>-<end>[-[<range>.]<file>][-g<generation>][-<mark>].<extension>`. Generations
 * after the first include their number, so no key is written twice.
 */
export const fileKey = (prefix: string, spec: KeySpec, file: FileIdentity, extension: string): string =>
  intervalKey(prefix, spec, `${fileSuffix(file)}${generationSuffix(file)}.${extension}`);

/** The key of the file with the rejected rows of a generation. */
export const rejectedKey = (
  prefix: string,
  spec: KeySpec,
  file: Pick<FileIdentity, 'generation' | 'mark'>,
): string => intervalKey(prefix, spec, `${generationSuffix(file)}-rejected.jsonl`);

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
  return join(path, `${intervalName(spec)}${suffix}`);
}

function fileSuffix({ range, file }: FileIdentity): string {
  if (range !== null) return `-${range}.${file ?? 0}`;
  return file === null ? '' : `-${file}`;
}

const generationSuffix = ({ generation, mark }: Pick<FileIdentity, 'generation' | 'mark'>): string =>
  `${generation > 1 ? `-g${generation}` : ''}${mark === null ? '' : `-${mark}`}`;

/** The key of an interval's manifest. It does not depend on the variables of the prefix. */
export const manifestKey = (prefix: string, spec: KeySpec): string =>
  join(constantPrefix(prefix), '_manifests', spec.batch_export_id, `${intervalName(spec)}.json`);

/** The key of the object that a destination test writes and deletes. */
export const testKey = (prefix: string, testId: string): string =>
  join(constantPrefix(prefix), '_exportd_test', testId);

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
    rejectedKey(prefix, longest, file),
    manifestKey(prefix, longest),
  ];
  const length = Math.max(...keys.map((key) => Buffer.byteLength(key)));
  return length > maxKeyBytes
    ? `The prefix is too long: keys would have up to ${length} bytes. S3 allows ${maxKeyBytes}.`
    : null;
}
