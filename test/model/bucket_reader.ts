import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import type { IndependentReader } from '../encoding/duckdb.ts';
import type { TestBucket } from '../setup/bucket.ts';

/** A row of a file. Times are microseconds since 1970. */
export interface ReadRow {
  readonly id: string;
  readonly at: number;
  /** Of persons: the property that each change sets, and the versions of the mapping and of the person. */
  readonly number: number | null;
  readonly versions: readonly [number, number];
}

/** The rows that a manifest names. */
export interface ReadInterval {
  readonly start: string;
  readonly settled: boolean;
  readonly rows: readonly ReadRow[];
  /** Rows of files of earlier generations. */
  readonly earlier: readonly ReadRow[];
}

/** What a reader needs of a manifest, as the README of the destination describes it. */
interface ReadManifest {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly generation: number;
  readonly settled: boolean;
  readonly columns: readonly ExportedColumn[];
  readonly files: readonly { readonly key: string }[];
  readonly earlier: readonly { readonly key: string }[];
}

/** Reads an export from its prefix, knowing only the layout: manifests in folders, and the files that they name. */
export async function readBucket(
  { client, bucket: Bucket }: TestBucket,
  duckDb: IndependentReader,
  prefix: string,
): Promise<ReadInterval[]> {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix }));
  const bytesOf = async (Key: string): Promise<Buffer> => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };
  const manifests = new Map<string, ReadManifest>();
  for (const { Key = '' } of Contents.filter(({ Key: key = '' }) => key.includes('/_manifests/'))) {
    const manifest = JSON.parse((await bytesOf(Key)).toString()) as ReadManifest;
    const interval = `${manifest.data_interval_start}/${manifest.data_interval_end}`;
    if (manifest.generation > (manifests.get(interval)?.generation ?? 0)) manifests.set(interval, manifest);
  }
  const folder = mkdtempSync(join(tmpdir(), 'exportd-model-'));
  const readFile = async (key: string, columns: readonly ExportedColumn[]): Promise<ReadRow[]> => {
    const path = join(folder, key.replaceAll('/', '_'));
    writeFileSync(path, await bytesOf(key));
    const format = key.includes('.parquet') ? 'parquet' : key.includes('.csv') ? 'csv' : 'jsonLines';
    const rows = await duckDb[format](path, columns);
    const indexOf = (name: string): number => columns.findIndex((column) => column.name === name);
    return rows.map((row) => {
      const textOf = (name: string): string | null => row[indexOf(name)] ?? null;
      const properties = JSON.parse(textOf('properties') ?? '{}') as { number?: number } | null;
      return {
        id: textOf('uuid') ?? textOf('distinct_id') ?? '',
        at: microsecondsOf(textOf('_inserted_at') ?? ''),
        number: properties?.number ?? null,
        versions: [Number(textOf('person_distinct_id_version')), Number(textOf('person_version'))],
      };
    });
  };
  try {
    const intervals: ReadInterval[] = [];
    for (const { data_interval_start, settled, columns, files, earlier } of manifests.values()) {
      const rowsOf = async (listed: typeof files): Promise<ReadRow[]> =>
        (await Promise.all(listed.map(({ key }) => readFile(key, columns)))).flat();
      intervals.push({
        start: new Date(data_interval_start).toISOString(),
        settled,
        rows: await rowsOf(files),
        earlier: await rowsOf(earlier),
      });
    }
    return intervals;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Microseconds since 1970 of ISO 8601 text, or of such a number. */
function microsecondsOf(time: string): number {
  if (/^-?\d+$/.test(time)) return Number(time);
  const [, seconds = '', fraction = ''] = /^(.*?)(?:\.(\d+))?Z$/.exec(time) ?? [];
  return Date.parse(`${seconds}Z`) * 1000 + Number(fraction.padEnd(6, '0'));
}
