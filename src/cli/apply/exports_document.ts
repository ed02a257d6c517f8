import { Document } from 'yaml';
import { defaultDefinition } from '../../http/batch_exports/changes.ts';
import type { JsonObject } from '../commands/service_command.ts';
import { withoutNulls } from './plan.ts';

/** The longest line before a text is folded; a query keeps its lines. */
const lineWidth = 0;

/** The fields of an export that `exportd apply` reads, without those that have their default. */
export function toDeclaration(one: JsonObject): JsonObject {
  const defaults: Readonly<Record<string, unknown>> = defaultDefinition;
  const definition = Object.keys(defaults)
    .map((field) => [field, one[field]] as const)
    // An interval of an hour or less has no offsets.
    .filter(([field, value]) => value !== undefined && value !== null && value !== defaults[field]);
  const { type, config } = one.destination as { type: unknown; config: JsonObject };
  return {
    name: one.name,
    model: one.model,
    interval: one.interval,
    ...Object.fromEntries(definition),
    ...(one.paused === true && { paused: true }),
    destination: { type, config: withoutNulls(config) },
  };
}

/** Writes exports as a file that `exportd apply` reads. */
export function exportsDocument(exports: readonly JsonObject[]): string {
  const document = new Document({ exports: exports.map(toDeclaration) });
  document.commentBefore = [
    ' Secrets are not shown. An update without them keeps those that are stored; a new export needs them, for example:',
    '   aws_access_key_id: !env AWS_ACCESS_KEY_ID',
    '   aws_secret_access_key: !file /run/secrets/aws_secret_access_key',
  ].join('\n');
  return document.toString({ lineWidth });
}
