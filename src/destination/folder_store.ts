/**
 * Objects below a folder of a bucket, such as the log of a table. What their writers rely on: an object is created once, by one of
 * several, which needs a store with conditional writes.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { ListObjectsV2Command, type ListObjectsV2CommandOutput, PutObjectCommand } from '@aws-sdk/client-s3';
import { type Bound, bounds, boundText } from '../config/bounds.ts';
import { provesBytes, requireField, unprovenBytes } from './answers.ts';
import { DestinationError } from './destination.ts';
import { conditionFailureCodes, isErrorType } from './errors.ts';
import { reservedFolders } from './prefix.ts';
import { type S3Requests, sendCommand } from './requests.ts';
import { listProgress, nextToken } from './bucket_reader.ts';
import { deleteObject } from './delete_object.ts';
import { openObject } from './read_object.ts';
import type { ObjectOptions } from './write_object.ts';

/** An object that was read. */
interface FolderObject {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** An object as the store lists it. */
export interface ListedObject {
  /** Its key below the folder. */
  readonly name: string;
  readonly etag: string;
  readonly modified_at: Date;
}

/** What is left of the bytes of objects that are read together. */
export interface ReadingBudget {
  left: number;
  /** For messages. */
  readonly bound: string;
}

export const readingBudget = (bound: Bound): ReadingBudget => ({ left: bound.max, bound: boundText(bound) });

/** The store of a folder; names are below it. All methods throw DestinationError. */
export type FolderStore = ReturnType<typeof openFolderStore>;

/** How often a request that conflicts with another one is repeated, and the wait in between in milliseconds. */
const [maxConflicts, conflictPauseMs] = [10, 200];

/**
 * Opens the store of a folder.
 * @param root the folder, without a slash at its end
 * @param refusesOverwrites whether the store was seen to refuse overwrites; null is unknown
 */
export function openFolderStore(
  requests: S3Requests,
  root: string,
  options: ObjectOptions,
  refusesOverwrites: boolean | null,
) {
  const keyOf = (name: string): string => `${root}/${name}`;
  const read = async (
    name: string,
    signal: AbortSignal,
    budget: ReadingBudget,
  ): Promise<FolderObject | null> => {
    const object = await openObject(requests, keyOf(name), signal);
    if (!object) return null;
    // Before anything is read, so that objects that are read at the same time share it.
    if (object.bytes > budget.left) {
      object.close();
      throw new DestinationError(
        'TableTooLarge',
        `The object ${keyOf(name)} of the log of the table has ${object.bytes} bytes, and at most ${budget.bound} are read at once.`,
        { transient: false },
      );
    }
    budget.left -= object.bytes;
    const bytes = Buffer.allocUnsafeSlow(object.bytes);
    let at = 0;
    for await (const chunk of object.chunks) at += chunk.copy(bytes, at);
    return { bytes, etag: object.etag };
  };
  /** Writes an object, and reads it unless the answer proves that. @returns its ETag */
  const put = async (
    name: string,
    bytes: Buffer,
    conditions: { IfNoneMatch?: string },
    signal: AbortSignal,
  ): Promise<string> => {
    const input = { Bucket: requests.bucket, Key: keyOf(name), Body: bytes, ...options, ...conditions };
    const written = await sendCommand(requests, PutObjectCommand, input, signal);
    if (provesBytes(written, bytes)) return requireField('PutObject', written.ETag, 'an ETag');
    const found = await read(name, signal, readingBudget({ ...bounds.tableLogBytes, max: bytes.length }));
    if (!found?.bytes.equals(bytes)) throw unprovenBytes();
    return found.etag;
  };
  /** @returns the ETag; null if the object exists, which a request that was repeated after a lost response may have made */
  const create = async (name: string, bytes: Buffer, signal: AbortSignal): Promise<string | null> => {
    for (let conflicts = 0; ; conflicts += 1)
      try {
        return await put(name, bytes, { IfNoneMatch: '*' }, signal);
      } catch (error) {
        if (isErrorType(error, 'NotImplemented')) throw unconditional();
        if (!(error instanceof DestinationError) || !conditionFailureCodes.has(error.type)) throw error;
        if (error.type === 'PreconditionFailed' || conflicts >= maxConflicts) return null;
        // Another request for the key is in progress; afterwards the key is taken or free.
        await wait(conflictPauseMs, undefined, { signal }).catch(() => {
          throw signal.reason;
        });
      }
  };
  let isProven = refusesOverwrites === true;
  return {
    root,
    /** The folder for messages. */
    name: `s3://${requests.bucket}/${root}`,
    /** The name of an object for messages. */
    nameOf: (name: string): string => `s3://${requests.bucket}/${keyOf(name)}`,
    /**
     * Makes sure that the store refuses to overwrite, with an object that it deletes.
     * @throws DestinationError `ConditionalWritesMissing`
     */
    requireConditionalWrites: async (signal: AbortSignal): Promise<void> => {
      if (refusesOverwrites === false) throw unconditional();
      if (isProven) return;
      const name = `${reservedFolders.tests}/${randomUUID()}`;
      const bytes = Buffer.from('exportd tests whether an object can be overwritten.\n');
      const isNew = (await create(name, bytes, signal)) !== null;
      try {
        // The key is random: if the first request was refused, the second one may be the first that arrived.
        const overwrites = async (): Promise<boolean> => (await create(name, bytes, signal)) !== null;
        if ((await overwrites()) && (isNew || (await overwrites()))) throw unconditional();
      } finally {
        await deleteObject(requests, keyOf(name), signal).catch(() => undefined);
      }
      isProven = true;
    },
    create,
    /** Writes an object, whatever there is. */
    replace: async (name: string, bytes: Buffer, signal: AbortSignal): Promise<void> => {
      await put(name, bytes, {}, signal);
    },
    /** Reads an object, as much as the budget has left; null if it does not exist. @throws DestinationError `TableTooLarge` */
    read,
    /** Reads what the objects are. */
    foreign: requests.foreign,
    /** Lists the objects below a folder in the order of their names, after a name. */
    list: async (folder: string, after: string, signal: AbortSignal): Promise<ListedObject[]> => {
      const advance = listProgress('ListObjectsV2', bounds.tableLog);
      const found: ListedObject[] = [];
      let token: string | undefined;
      do {
        const input = {
          Bucket: requests.bucket,
          Prefix: keyOf(folder),
          StartAfter: keyOf(`${folder}${after}`),
          ...(token !== undefined && { ContinuationToken: token }),
        };
        const page: ListObjectsV2CommandOutput = await sendCommand(
          requests,
          ListObjectsV2Command,
          input,
          signal,
        );
        const contents = page.Contents ?? [];
        token = nextToken(page);
        if (token !== undefined) advance(contents.length, token, contents.at(-1)?.Key);
        for (const { Key, ETag = '', LastModified = new Date() } of contents)
          if (Key !== undefined)
            found.push({ name: Key.slice(root.length + 1), etag: ETag, modified_at: LastModified });
      } while (token !== undefined);
      return found;
    },
    delete: async (name: string, signal: AbortSignal): Promise<void> => {
      await deleteObject(requests, keyOf(name), signal);
    },
  };
}

const unconditional = (): DestinationError =>
  new DestinationError(
    'ConditionalWritesMissing',
    'The S3 server does not refuse to overwrite an object (If-None-Match), which a table needs: two commits could have the same version. Use another store, or set table_format to null.',
    { transient: false },
  );
