import { randomUUID } from 'node:crypto';
import { type KeyRing, SecretUnreadable, type StoredSecret } from '../config/key_ring.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { NotificationType } from './notification.ts';
import type { PayloadFormat } from './message_body.ts';
import type { Attempt } from './send_webhook.ts';

/** Binds a sealed secret to its webhook, so that it cannot be used for another one. */
const sealContext = (webhookId: string): string => `webhooks/${webhookId}`;

export const sealWebhookSecret = (keyRing: KeyRing, webhookId: string, secret: string): string =>
  keyRing.seal(secret, sealContext(webhookId));

/** Decrypts the secret of a webhook; undefined when no key of the key ring fits. */
export function openWebhookSecret(keyRing: KeyRing, webhookId: string, sealed: string): string | undefined {
  try {
    return keyRing.open(sealed, sealContext(webhookId));
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined;
    throw error;
  }
}

/** Binds a sealed URL to its webhook. */
const urlContext = (webhookId: string): string => `webhooks/${webhookId}/url`;

export const sealWebhookUrl = (keyRing: KeyRing, webhookId: string, url: string): string =>
  keyRing.seal(url, urlContext(webhookId));

/** Decrypts the URL of a webhook; undefined when no key of the ring fits, as on servers that only encrypt. */
export function openWebhookUrl(keyRing: KeyRing, webhookId: string, sealed: string): string | undefined {
  try {
    return keyRing.open(sealed, urlContext(webhookId));
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined;
    throw error;
  }
}

/** The part of a URL that is no credential. */
const originOf = (url: string): string => new URL(url).origin;

/** A webhook without its secret. */
export interface Webhook extends Omit<WebhookFields, 'url'> {
  readonly id: string;
  readonly origin: string;
  readonly sealed_url: string;
  readonly created_at: string;
  readonly last_delivery: {
    readonly at: string;
    readonly status: number | null;
    readonly detail: string;
  } | null;
}

/** The fields that the owner sets. */
export interface WebhookFields {
  readonly url: string;
  readonly events: readonly NotificationType[];
  readonly format: PayloadFormat;
  /** The export whose events it receives; null for all exports of the project. */
  readonly batch_export: string | null;
  readonly enabled: boolean;
}

type WebhookRow = Omit<Webhook, 'last_delivery'> & {
  readonly last_attempt_at: string | null;
  readonly last_attempt_status: number | null;
  readonly last_attempt_detail: string | null;
};

const columns = `id, origin, sealed_url, events, format, batch_export_id as batch_export, enabled, created_at, last_attempt_at,
  last_attempt_status, last_attempt_detail`;

function webhookOf(row: WebhookRow): Webhook {
  const { last_attempt_at: at, last_attempt_status: status, last_attempt_detail: detail, ...fields } = row;
  return { ...fields, last_delivery: at === null ? null : { at, status, detail: detail ?? '' } };
}

/** Webhooks per project. The transaction that ends a run creates a delivery for each of them and must stay short. */
export const maxWebhooks = 100;

/** Stores a webhook with its secret encrypted; returns undefined when the project already has `maxWebhooks`. */
export async function createWebhook(
  pool: Pool,
  keyRing: KeyRing,
  teamId: number,
  { url, events, format, batch_export, enabled }: WebhookFields,
  secret: string,
): Promise<Webhook | undefined> {
  const id = randomUUID();
  const { rows } = await pool.query<WebhookRow>(
    `insert into exportd.webhooks (id, team_id, sealed_url, events, format, batch_export_id, enabled, secret, origin)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9
     where (select count(*) from exportd.webhooks where team_id = $2) < ${maxWebhooks} returning ${columns}`,
    [
      id,
      teamId,
      sealWebhookUrl(keyRing, id, url),
      events,
      format,
      batch_export,
      enabled,
      sealWebhookSecret(keyRing, id, secret),
      originOf(url),
    ],
  );
  return rows[0] && webhookOf(rows[0]);
}

/** Returns a webhook of the project. */
export async function findWebhook(
  database: Pool | Connection,
  teamId: number,
  id: string,
): Promise<Webhook | undefined> {
  const { rows } = await database.query<WebhookRow>(
    `select ${columns} from exportd.webhooks where team_id = $1 and id = $2`,
    [teamId, id],
  );
  return rows[0] && webhookOf(rows[0]);
}

/** Returns a page of the project's webhooks, newest first. */
export async function listWebhooks(
  pool: Pool,
  teamId: number,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: Webhook[] }> {
  const counted = await pool.query<{ count: number }>(
    'select count(*) as count from exportd.webhooks where team_id = $1',
    [teamId],
  );
  const { rows } = await pool.query<WebhookRow>(
    `select ${columns} from exportd.webhooks where team_id = $1 order by created_at desc, id limit $2 offset $3`,
    [teamId, window.limit, window.offset],
  );
  return { count: counted.rows[0]?.count ?? 0, results: rows.map(webhookOf) };
}

/**
 * Updates the given fields of a webhook; returns undefined when it does not exist.
 * @param secret the new signing secret; undefined keeps the current one
 */
export async function updateWebhook(
  pool: Pool,
  keyRing: KeyRing,
  teamId: number,
  id: string,
  fields: Partial<WebhookFields>,
  secret: string | undefined,
): Promise<Webhook | undefined> {
  const { rows } = await pool.query<WebhookRow>(
    `update exportd.webhooks set sealed_url = coalesce($3, sealed_url), events = coalesce($4, events),
       batch_export_id = case when $5 then $6 else batch_export_id end,
       enabled = coalesce($7, enabled), secret = coalesce($8, secret), format = coalesce($9, format),
       origin = coalesce($10, origin)
     where team_id = $1 and id = $2 returning ${columns}`,
    [
      teamId,
      id,
      fields.url === undefined ? null : sealWebhookUrl(keyRing, id, fields.url),
      fields.events ?? null,
      fields.batch_export !== undefined,
      fields.batch_export ?? null,
      fields.enabled ?? null,
      secret === undefined ? null : sealWebhookSecret(keyRing, id, secret),
      fields.format ?? null,
      fields.url === undefined ? null : originOf(fields.url),
    ],
  );
  return rows[0] && webhookOf(rows[0]);
}

/** Deletes a webhook and its pending deliveries. @returns whether the webhook existed */
export async function deleteWebhook(pool: Pool, teamId: number, id: string): Promise<boolean> {
  const { rowCount } = await pool.query('delete from exportd.webhooks where team_id = $1 and id = $2', [
    teamId,
    id,
  ]);
  return rowCount === 1;
}

/** A webhook as a test needs it, with its secret and URL sealed; undefined if it was deleted. */
export async function readWebhookToTest(
  pool: Pool,
  teamId: number,
  id: string,
): Promise<(Pick<Webhook, 'sealed_url' | 'format'> & { readonly sealed_secret: string }) | undefined> {
  const { rows } = await pool.query<
    Pick<Webhook, 'sealed_url' | 'format'> & { readonly sealed_secret: string }
  >(
    'select sealed_url, secret as sealed_secret, format from exportd.webhooks where team_id = $1 and id = $2',
    [teamId, id],
  );
  return rows[0];
}

/** Shows an attempt to send a message, also that of a test, as the last one of its webhook. */
export async function showAttempt(
  database: Pool | Connection,
  id: string,
  { status, detail }: Attempt,
): Promise<boolean> {
  const { rowCount } = await database.query(
    `update exportd.webhooks set last_attempt_at = clock_timestamp(), last_attempt_status = $2, last_attempt_detail = $3
     where id = $1`,
    [id, status, detail],
  );
  return rowCount === 1;
}

/** The sealed columns of a webhook, with what they are and where they are sealed for. */
const sealedColumns = [
  { column: 'secret', what: 'secret', contextOf: sealContext },
  { column: 'sealed_url', what: 'URL', contextOf: urlContext },
] as const;

/** Reads the secrets and URLs of all webhooks. */
export async function listWebhookSecrets(pool: Pool): Promise<StoredSecret[]> {
  const found = await Promise.all(
    sealedColumns.map(async ({ column, what, contextOf }) => {
      const { rows } = await pool.query<{ id: string; sealed: string }>(
        `select id, ${column} as sealed from exportd.webhooks order by id`,
      );
      return rows.map(({ id, sealed }) => ({
        owner: `the ${what} of webhook ${id}`,
        sealed,
        location: contextOf(id),
        replace: async (again: string) => {
          const { rowCount } = await pool.query(
            `update exportd.webhooks set ${column} = $3 where id = $1 and ${column} = $2`,
            [id, sealed, again],
          );
          return rowCount ?? 0;
        },
      }));
    }),
  );
  return found.flat();
}
