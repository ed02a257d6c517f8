import type { S3Config } from './config.ts';
import { isSameBucket } from './key_collision.ts';

/**
 * Returns `config` with the credentials and connection settings of `other` if both lead to the same bucket; else
 * `config`. The keys remain those of `config`.
 */
export function withCredentialsOf(config: S3Config, other: S3Config): S3Config {
  if (!isSameBucket(config, other)) return config;
  const { region, endpoint_url, use_virtual_style_addressing, role_arn, external_id } = other;
  const { aws_access_key_id, aws_secret_access_key } = other;
  return {
    ...config,
    region,
    endpoint_url,
    use_virtual_style_addressing,
    aws_access_key_id,
    aws_secret_access_key,
    role_arn,
    external_id,
  };
}
