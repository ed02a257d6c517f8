import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Client } from '@temporalio/client';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { type Settings, SettingsError } from '../config/settings.ts';

/**
 * Loads the operator's payload codecs, which encode what Temporal stores of workflows: inputs, results, memos, summaries
 * and signals. Search attributes stay readable, since the server indexes them.
 * @throws SettingsError when the module cannot be loaded or exports something else
 */
export async function loadPayloadCodecs({
  EXPORTD_PAYLOAD_CODEC_MODULE: name,
}: Pick<Settings, 'EXPORTD_PAYLOAD_CODEC_MODULE'>): Promise<PayloadCodec[]> {
  if (name === undefined) return [];
  const isPath = name.startsWith('.') || isAbsolute(name);
  let exported: unknown;
  try {
    // A path is relative to the working folder, as in other settings.
    const imported = (await import(isPath ? pathToFileURL(resolve(name)).href : name)) as object;
    exported = 'payloadCodecs' in imported ? imported.payloadCodecs : undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(`EXPORTD_PAYLOAD_CODEC_MODULE cannot be loaded: ${reason}`);
  }
  if (!Array.isArray(exported) || !exported.every(isCodec))
    throw new SettingsError(
      "EXPORTD_PAYLOAD_CODEC_MODULE must export `payloadCodecs`, an array of objects with the methods `encode` and `decode` of Temporal's PayloadCodec.",
    );
  return exported;
}

/** Decodes payloads that were read from a history, as the SDK decodes the others. */
export async function decodePayloads(
  { options }: Pick<Client, 'options'>,
  payloads: readonly Payload[],
): Promise<Payload[]> {
  let decoded = [...payloads];
  for (const codec of options.loadedDataConverter.payloadCodecs.toReversed())
    decoded = await codec.decode(decoded);
  return decoded;
}

const isCodec = (value: unknown): value is PayloadCodec =>
  typeof value === 'object' &&
  value !== null &&
  'encode' in value &&
  'decode' in value &&
  typeof value.encode === 'function' &&
  typeof value.decode === 'function';
