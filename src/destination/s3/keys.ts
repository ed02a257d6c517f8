import { models } from '../../domain/batch_export.ts';
import type { FileIdentity, KeySubject } from '../destination.ts';
import { constantPart, renderPrefix } from './prefix.ts';

/** S3's own limit on the length of a key, in bytes of UTF-8. */
const keyBytesMaximum = 1_024;

/** `20261101T100000Z`: sorts by time and needs no escaping anywhere. */
const compactTime = (time: string): string => new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');

const intervalName = (subject: KeySubject): string =>
  `${compactTime(subject.data_interval_start)}-${compactTime(subject.data_interval_end)}`;

const join = (...segments: readonly string[]): string =>
  segments.filter((segment) => segment !== '').join('/');

/**
 * The key of a data file: `<prefix>/<start>-<end>[-[<range>.]<file>][-g<generation>].<extension>`. Generations from the
 * second on carry their number, so that none is ever written twice.
 */
export const fileKey = (
  prefix: string,
  subject: KeySubject,
  place: FileIdentity,
  extension: string,
): string =>
  intervalKey(prefix, subject, `${placeSuffix(place)}${generationSuffix(place.generation)}.${extension}`);

/** The key of the file that holds the rows which a generation had to leave out. */
export const rejectedKey = (prefix: string, subject: KeySubject, generation: number): string =>
  intervalKey(prefix, subject, `${generationSuffix(generation)}-rejected.jsonl`);

function intervalKey(prefix: string, subject: KeySubject, ending: string): string {
  const start = compactTime(subject.data_interval_start);
  const path = renderPrefix(prefix, {
    year: start.slice(0, 4),
    month: start.slice(4, 6),
    day: start.slice(6, 8),
    hour: start.slice(9, 11),
    minute: start.slice(11, 13),
    second: start.slice(13, 15),
    data_interval_start: start,
    data_interval_end: compactTime(subject.data_interval_end),
    table: subject.model,
  });
  return join(path, `${intervalName(subject)}${ending}`);
}

function placeSuffix({ range, file }: FileIdentity): string {
  if (range !== null) return `-${range}.${file ?? 0}`;
  return file === null ? '' : `-${file}`;
}

const generationSuffix = (generation: number): string => (generation > 1 ? `-g${generation}` : '');

/** The key of an interval's manifest; it does not move when variables of the prefix change. */
export const manifestKey = (prefix: string, subject: KeySubject): string =>
  join(constantPart(prefix), '_manifests', subject.batch_export_id, `${intervalName(subject)}.json`);

/** The key of the object that a test of the destination writes and removes. */
export const testKey = (prefix: string, testId: string): string =>
  join(constantPart(prefix), '_exportd_test', testId);

/** Numbers in keys are taken to have no more digits than this one. */
const largestNumber = 999_999;
const longestExtension = 'jsonl.zst';

/** Says in a sentence that keys under this prefix could be longer than S3 allows; null when they fit. */
export function keyLengthProblem(prefix: string): string | null {
  const longest: KeySubject = {
    batch_export_id: '00000000-0000-0000-0000-000000000000',
    model: models.reduce((one, other) => (other.length > one.length ? other : one)),
    data_interval_start: '2026-11-01T10:00:00Z',
    data_interval_end: '2026-11-01T11:00:00Z',
  };
  const place = { generation: largestNumber, range: largestNumber, file: largestNumber };
  const keys = [
    fileKey(prefix, longest, place, longestExtension),
    rejectedKey(prefix, longest, largestNumber),
    manifestKey(prefix, longest),
  ];
  const length = Math.max(...keys.map((key) => Buffer.byteLength(key)));
  return length > keyBytesMaximum
    ? `The prefix is too long: keys would have ${length} bytes, and S3 allows ${keyBytesMaximum}.`
    : null;
}
