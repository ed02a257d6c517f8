import * as z from 'zod';
import { bounds } from '../config/bounds.ts';
import { models } from '../domain/batch_export.ts';
import { bucketsOf, encodeBuckets, type Fingerprint, maxFingerprintBuckets } from '../domain/fingerprint.ts';
import { withBase } from '../domain/run.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  exportedFingerprint,
  finishedOf,
  sourceBefore,
} from '../domain/run_state.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { type PartitionColumn, partitionColumns, partitionIn } from './partitions.ts';

/** Ids, times, numbers and names. A run that adopts a manifest stores its texts in the journal. */
const maxShortText = 200;
/** S3's limit. */
const maxKey = 1_024;
/** What an index of PostgreSQL holds. */
const maxDistinctId = 2_704;
/** Above what runs reach, and what keys have room for. */
const maxGeneration = 999_999;
const shortText = z.string().max(maxShortText);
const key = z.string().max(maxKey);
const generation = z.int().min(1).max(maxGeneration);

const count = z.int().min(0);
const time = z.string().max(maxShortText).describe('ISO 8601, UTC');
const crc32 = z.string().regex(/^[0-9a-f]{8}$/);

const sortKey = z
  .object({
    inserted_at: shortText.describe('ISO 8601 in UTC with microseconds'),
    id: z.string().max(maxDistinctId).describe('uuid of an event, distinct_id of a person'),
  })
  .nullable();

/** Readers get a list of buckets; exportd has them encoded. */
const fingerprint = z
  .object({
    hash: z
      .enum(['uuid_hash_extended/0', 'hashtextextended/0'])
      .describe("PostgreSQL's function and its seed: of the uuid of an event, the distinct_id of a person"),
    width_ms: z.int().min(1).describe('Length of a bucket; they start at data_interval_start'),
    buckets: z
      .array(
        z.object({
          index: count,
          rows: count,
          sum: z
            .string()
            .regex(/^\d{1,20}$/)
            .describe('Sum of the hashes modulo 2^64, without a sign'),
        }),
      )
      .max(maxFingerprintBuckets)
      .refine((buckets) => buckets.every(({ index }, at) => index > (buckets[at - 1]?.index ?? -1)))
      .describe('By insertion time; only buckets that have rows'),
    all_events: z
      .literal(true)
      .optional()
      .describe('Set if these are all events of the project, because persons decide which are selected'),
  })
  .describe('Which rows these are, and nothing about their contents')
  .transform(({ buckets, ...facts }): Fingerprint => ({ ...facts, encoded_buckets: encodeBuckets(buckets) }));

/** A fingerprint as readers get it. */
export const listedFingerprint = ({ hash, width_ms, encoded_buckets, all_events }: Fingerprint) => ({
  hash,
  width_ms,
  buckets: bucketsOf({ encoded_buckets }),
  ...(all_events && { all_events }),
});

const partition = z
  .partialRecord(z.enum(partitionColumns), shortText)
  .optional()
  .describe('The values of the partitions in the key, as text, if the export has partitions');

const earlierFile = z.object({
  key,
  rows: count,
  bytes: count,
  crc32,
  generation: generation.describe('The generation that wrote the file'),
  partition,
});

/**
 * The schema of a manifest, published for readers as `manifest.schema.json`. Fields may be added; readers should ignore unknown
 * fields.
 */
export const manifestSchema = z
  .object({
    version: z.literal(1),
    batch_export_id: shortText,
    run_id: shortText.describe('The run that wrote the files'),
    generation: generation.describe(
      'Increases with every export of the interval; the highest generation wins',
    ),
    config_version: z.int().describe('Config version of the run'),
    model: z.enum(models),
    data_interval_start: time.describe('Start of the interval [start, end) of insertion time; ISO 8601, UTC'),
    data_interval_end: time,
    settled: z
      .boolean()
      .describe('False when a transaction that may add rows was still open when reading started'),
    columns: z
      .array(z.object({ name: shortText, type: shortText }))
      .max(bounds.queryColumns.max)
      .describe(
        'In file order; types are uuid, text, timestamp, date, json, bigint, integer, double, boolean',
      ),
    rows: count.describe('Total of all files'),
    bytes: count.describe('Total of all files'),
    source_rows: count.describe('Rows of the interval in the source right after reading'),
    fingerprint: fingerprint.describe('The rows of the files, and the rejected ones'),
    rejected: count.describe(
      'Number of rows that the format cannot represent or PostgreSQL cannot read; they are stored in rejected_file',
    ),
    rejected_file: z
      .object({ key, rows: count, fingerprint, bytes: count, crc32 })
      .nullable()
      .default(null)
      .describe('JSON lines with the fields id, column, reason and row'),
    encoder: shortText.describe('Name and version of the encoder of the files'),
    files: z
      .array(
        z.object({
          key: key.describe('Key in the bucket of the manifest; the extension tells format and compression'),
          rows: count,
          fingerprint,
          bytes: count,
          crc32: crc32.describe('CRC-32 of the object, eight hexadecimal digits'),
          first: sortKey.describe('Sort key of the first row; rows are sorted between first and last'),
          last: sortKey,
          generation: generation
            .optional()
            .describe('The generation that wrote the file, if it is not the one of the manifest'),
          partition,
        }),
      )
      .max(bounds.manifestFiles.max)
      .describe(
        'Every row of the interval is in exactly one file, once. In the order of their first keys; files of one generation do not overlap',
      ),
    kept: z
      .array(earlierFile)
      .max(bounds.manifestFiles.max)
      .default([])
      .describe(
        'Files of earlier generations that stay because their rows could not be compared with these files; readers do not need them',
      ),
    earlier: z
      .array(earlierFile)
      .max(bounds.manifestFiles.max)
      .default([])
      .describe(
        'Files of earlier generations of persons, which may have the only state of a person: read the newest state of each distinct_id over files and earlier',
      ),
    created_at: time,
  })
  .describe('The files that contain the rows of one interval of a batch export');

/** The list of files that readers follow: they contain each row of an interval exactly once. */
export type Manifest = Readonly<z.infer<typeof manifestSchema>>;

/**
 * Creates the manifest of a run whose publishing was claimed, with its completed files in key order. It depends on
 * journaled facts and the config version only, so repeating it yields the same bytes.
 * @param partition_by the partitions of its config version
 * @throws RangeError when the run is not that far
 */
export function manifestOf(
  runId: string,
  run: ExistingRun,
  files: readonly CompletedFile[],
  columns: readonly ExportedColumn[],
  partition_by: readonly PartitionColumn[] = [],
): Manifest {
  const inPartition = <File extends { readonly key: string }>(file: File) =>
    partition_by.length === 0 ? file : { ...file, partition: partitionIn(file.key, partition_by) };
  const { phase } = run;
  if (phase.name !== 'publishing')
    throw new RangeError('A manifest requires a finished run whose publishing was claimed.');
  const published = withBase(run);
  const left = earlierGenerationsOf(run);
  const { spec, rejected_file } = published;
  return {
    version: 1,
    batch_export_id: spec.batch_export_id,
    run_id: runId,
    generation: run.generation,
    config_version: spec.config_version,
    model: spec.model,
    data_interval_start: spec.data_interval_start,
    data_interval_end: spec.data_interval_end,
    settled: run.settled,
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows: sum(files, ({ rows }) => rows),
    bytes: sum(files, ({ bytes }) => bytes),
    source_rows: phase.finished.source_rows,
    fingerprint: publishedFingerprint(published),
    rejected: rejected_file?.rows ?? 0,
    rejected_file: rejected_file && {
      key: rejected_file.key,
      rows: rejected_file.rows,
      fingerprint: rejected_file.fingerprint,
      bytes: rejected_file.bytes,
      crc32: rejected_file.crc32,
    },
    encoder: phase.finished.encoder,
    files: files.map((file) => inPartition(manifestFileOf(file))),
    kept: left.kept.map(inPartition),
    earlier: left.earlier.map(inPartition),
    created_at: phase.claimed_at,
  };
}

/**
 * The rows of the files and the rejected ones. Where persons decide which events are selected, all events of the project
 * from before the first of them was read: one that arrived later may be missing.
 */
const publishedFingerprint = (run: ExistingRun): Fingerprint =>
  (finishedOf(run)?.fingerprint?.all_events ? sourceBefore(run) : null) ?? exportedFingerprint(run);

const manifestFileOf = ({
  key,
  rows,
  fingerprint,
  bytes,
  crc32,
  first,
  last,
  generation,
}: CompletedFile) => ({
  key,
  rows,
  fingerprint,
  bytes,
  crc32,
  first: keyOf(first),
  last: keyOf(last),
  ...(generation !== undefined && { generation }),
});

/** A key as readers know it, without the row of it where the file ends. */
const keyOf = (key: SortKey | null): SortKey | null => key && { inserted_at: key.inserted_at, id: key.id };

/** Formats a manifest for storage: a line of JSON, which Athena, Trino and BigQuery read. */
export function formatManifest(manifest: Manifest): string {
  const listed = <Rows extends { readonly fingerprint: Fingerprint }>(rows: Rows) => ({
    ...rows,
    fingerprint: listedFingerprint(rows.fingerprint),
  });
  const { rejected_file, files } = manifest;
  const written = {
    ...listed(manifest),
    rejected_file: rejected_file && listed(rejected_file),
    files: files.map(listed),
  };
  return `${JSON.stringify(written)}\n`;
}

/** Parses a stored manifest; undefined when the text is not a manifest. */
export function parseManifest(text: string): Manifest | undefined {
  if (!hasFewValues(text)) return undefined;
  try {
    return manifestSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Whether parsing JSON takes little memory: twenty times that of a text of nothing but brackets otherwise. */
export const hasFewValues = (text: string): boolean =>
  countValues(text, bounds.manifestValues.max) <= bounds.manifestValues.max;

/** Counts what may be values of JSON, also in texts. @param most where counting ends, with one more */
export function countValues(text: string, most: number): number {
  let values = 0;
  for (let at = 0; at < text.length && values <= most; at += 1) {
    const code = text.charCodeAt(at);
    if (code === comma || code === bracket || code === brace) values += 1;
  }
  return values;
}

const [comma, bracket, brace] = [0x2c, 0x5b, 0x7b];

const sum = <Item>(items: readonly Item[], value: (item: Item) => number): number =>
  items.reduce((total, item) => total + value(item), 0);
