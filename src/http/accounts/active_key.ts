/** SQL condition: a row `key` authenticates. */
export const isActiveKey = `(key.revoked_at is null and (key.expires_at is null or key.expires_at > clock_timestamp()))`;
