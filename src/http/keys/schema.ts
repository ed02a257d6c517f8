import * as z from 'zod';
import { timestampSchema } from '../../journal/commands.ts';
import { presetNames, presets, scopeDescriptions, scopes } from '../scopes.ts';
import { listQuery, nameText, pathId, repeatable, responseTimestampSchema } from '../schemas.ts';
import { keyStatuses } from '../accounts/api_keys.ts';

/** A list of names with what each means, for a description. */
const described = (names: Readonly<Record<string, string>>): string =>
  Object.entries(names)
    .map(([name, text]) => `- \`${name}\`: ${text}`)
    .join('\n');

const scope = z.enum(scopes).meta({ id: 'Scope', description: described(scopeDescriptions) });

const preset = z.enum(presetNames).meta({
  id: 'Preset',
  description: described(Object.fromEntries(presetNames.map((name) => [name, presets[name].description]))),
});

const keyUser = z.object({ id: z.number().int(), email: z.string() });

/** An API key in a response, without the key itself. */
export const keySchema = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().describe('The first characters of the key.'),
    user: keyUser.describe('The owner, with whose permissions the key acts.'),
    created_by: keyUser.nullable().describe('Null for a key that was created on the command line.'),
    projects: z.array(z.number().int()).describe('Its projects, of those that the calling key covers.'),
    scopes: z.array(scope),
    preset: preset
      .nullable()
      .describe(
        'The preset that has exactly these scopes; null if none has. A preset that grows gives existing keys nothing.',
      ),
    status: z.enum(keyStatuses),
    created_at: responseTimestampSchema,
    expires_at: responseTimestampSchema.nullable().describe('Null if it does not expire.'),
    last_used_at: responseTimestampSchema.nullable().describe('The minute of its last use.'),
    revoked_at: responseTimestampSchema.nullable(),
    created_with: z
      .string()
      .nullable()
      .describe('The id of the key that it was created with. Null for the command line.'),
    rotated_from: z.string().nullable().describe('The id of the key that it replaces.'),
    active_descendants: z
      .number()
      .int()
      .describe('How many active keys were created with it, or with one of these in turn.'),
  })
  .meta({ id: 'ApiKey' });

export const keyListQuery = listQuery.extend({
  status: repeatable.describe(`One or more of ${keyStatuses.join(', ')}, repeated or comma-separated.`),
});

/** A new key. */
export const createdKeySchema = keySchema
  .extend({ key: z.string().describe('Returned only once: store it.') })
  .meta({ id: 'CreatedApiKey' });

export const createKeyBody = z
  .strictObject({
    name: nameText(100).describe('What the key is for.'),
    scopes: z
      .array(scope)
      .min(1)
      .max(scopes.length)
      .optional()
      .describe('Scopes of the calling key. Required without `preset`.'),
    preset: preset
      .optional()
      .describe('Instead of `scopes`: the scopes that the preset has now, which the calling key has too.'),
    projects: z
      .array(z.number().int())
      .min(1)
      .max(100)
      .optional()
      .describe('Projects of the calling key. Default: the project of the path.'),
    user_id: z
      .number()
      .int()
      .min(1)
      .max(2_147_483_647)
      .optional()
      .describe('The owner. Default: the calling user. Other users need `installation:admin`.'),
    expires_at: timestampSchema
      .nullish()
      .describe(
        'No later than the calling key expires. Default: as the calling key, or the latest time that `EXPORTD_KEY_MAX_LIFETIME` allows.',
      ),
  })
  .meta({ id: 'ApiKeyCreate' });

const maxOverlapSeconds = 30 * 86_400;

export const rotateKeyBody = z
  .strictObject({
    overlap_seconds: z
      .number()
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .default(86_400)
      .describe('How long the old key still works. 0 ends it at once.'),
  })
  .meta({ id: 'ApiKeyRotate' });

export const revokeKeyQuery = z.object({
  descendants: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true` also ends the keys that were created with it, or with one of these in turn.'),
});

export const keyPath = z.object({ project_id: z.string(), id: pathId });
