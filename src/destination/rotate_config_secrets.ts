import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';
import { inTransaction, type Connection, type Pool } from '../journal/database.ts';
import { resealField } from './sealed_config.ts';

/** How many secrets were encrypted again, and which could not be. */
export interface SecretRotation {
  readonly rotated: number;
  /** What each unreadable secret belongs to, and why it is unreadable. */
  readonly unreadable: readonly string[];
}

interface StoredSecrets {
  readonly version: number;
  readonly secrets: Readonly<Record<string, string>>;
}

/**
 * Encrypts the secrets of all config versions under the first key of the ring. A secret that several versions of an export
 * share stays the same in all of them, so that their difference still shows which fields were changed.
 */
export async function rotateConfigSecrets(pool: Pool, keyRing: KeyRing): Promise<SecretRotation> {
  const { rows } = await pool.query<{ batch_export_id: string }>(
    `select distinct batch_export_id
     from exportd.destination_configs, jsonb_each_text(secrets) as secret (field, sealed)
     where not starts_with(sealed, $1)
     order by batch_export_id`,
    [`${keyRing.keyId}:`],
  );
  let rotated = 0;
  const unreadable: string[] = [];
  for (const { batch_export_id } of rows) {
    const result = await inTransaction(pool, (connection) =>
      rotateExport(connection, keyRing, batch_export_id),
    );
    rotated += result.rotated;
    unreadable.push(...result.unreadable);
  }
  return { rotated, unreadable };
}

async function rotateExport(
  connection: Connection,
  keyRing: KeyRing,
  batchExportId: string,
): Promise<SecretRotation> {
  const { rows } = await connection.query<StoredSecrets>(
    'select version, secrets from exportd.destination_configs where batch_export_id = $1 order by version for update',
    [batchExportId],
  );
  const resealed = new Map<string, string>();
  const unreadable: string[] = [];
  let rotated = 0;
  const reseal = (field: string, sealed: string, version: number): string => {
    if (sealed.startsWith(`${keyRing.keyId}:`)) return sealed;
    const known = resealed.get(`${field}/${sealed}`);
    if (known !== undefined) return known;
    try {
      const again = resealField(keyRing, batchExportId, field, sealed);
      resealed.set(`${field}/${sealed}`, again);
      return again;
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push(
        `${field} of batch export ${batchExportId}, config version ${version}: ${error.message}`,
      );
      return sealed;
    }
  };
  for (const { version, secrets } of rows) {
    const entries = Object.entries(secrets).map(
      ([field, sealed]) => [field, reseal(field, sealed, version)] as const,
    );
    const changed = entries.filter(([field, sealed]) => sealed !== secrets[field]).length;
    if (changed === 0) continue;
    rotated += changed;
    await connection.query(
      'update exportd.destination_configs set secrets = $3 where batch_export_id = $1 and version = $2',
      [batchExportId, version, JSON.stringify(Object.fromEntries(entries))],
    );
  }
  return { rotated, unreadable };
}
