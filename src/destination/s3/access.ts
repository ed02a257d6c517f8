import type { S3Config } from './config.ts';
import { isSameBucket } from './key_collision.ts';

/**
 * A config with the credentials of another one, and its way to the bucket, if both lead to the same; else the config
 * itself. The keys stay its own.
 */
export function withAccessOf(config: S3Config, other: S3Config): S3Config {
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
