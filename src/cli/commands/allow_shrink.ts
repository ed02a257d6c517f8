import type { JsonObject, ServiceCommandOptions } from './service_command.ts';

/** Options of commands whose runs may remove rows from the bucket. */
export type ShrinkOptions = ServiceCommandOptions & { readonly allowShrink?: boolean };

/** The option itself. */
export const allowShrinkOption = [
  '--allow-shrink',
  'also remove rows from the bucket that are no longer in the source',
] as const;

/** The field of the request. */
export const allowsShrink = ({ allowShrink }: ShrinkOptions): JsonObject =>
  allowShrink === true ? { allow_shrink: true } : {};
