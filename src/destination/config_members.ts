import type { z } from 'zod';
import { CommandRefused } from '../domain/errors.ts';

/** The path of a config's member in a request, as error answers name it. */
export const configAttribute = (member?: string): string =>
  member === undefined ? 'destination__config' : `destination__config__${member}`;

/** Refuses a config because of one member. */
export const refuseMember = (member: string, detail: string): CommandRefused =>
  new CommandRefused('invalid_input', detail, configAttribute(member));

/** The members of a config without those that are null, which stand for their default. */
export function givenMembers(config: unknown): Record<string, unknown> {
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new CommandRefused('invalid_input', 'Configuration must be an object.', configAttribute());
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
}

/**
 * Checks the members of a config against a strict schema; the refusal names the member at fault and never repeats its
 * value, which may be a secret.
 * @throws CommandRefused
 */
export function parseMembers<Schema extends z.ZodObject>(
  schema: Schema,
  members: Readonly<Record<string, unknown>>,
): z.infer<Schema> {
  const unknown = Object.keys(members)
    .filter((member) => !(member in schema.shape))
    .sort();
  if (unknown[0] !== undefined)
    throw refuseMember(
      unknown[0],
      `Configuration has unknown field/s: ${unknown.map((member) => `'${member}'`).join(', ')}`,
    );
  const parsed = schema.safeParse(members);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const member = String(issue?.path[0] ?? '');
  if (!(member in members))
    throw new CommandRefused(
      'required',
      `Configuration missing required field: '${member}'`,
      configAttribute(member),
    );
  // Of the member itself: what lies inside it has messages of its own.
  if (issue?.code === 'invalid_type' && issue.path.length === 1)
    throw refuseMember(
      member,
      `Configuration has invalid type for '${member}': got '${typeName(members[member])}', expected '${issue.expected}'`,
    );
  throw refuseMember(member, issue?.message ?? 'Configuration is not usable.');
}

const typeName = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);
