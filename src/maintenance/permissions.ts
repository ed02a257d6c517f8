import { DestinationError } from '../destination/destination.ts';

/** The credentials lack a permission in the bucket. */
export class MissingPermission extends Error {
  override readonly name = 'MissingPermission';
  constructor(permission: string) {
    super(`The credentials of the destination lack the permission ${permission}.`);
  }
}

/** Sends a request that needs a permission. @throws MissingPermission when the request is denied */
export async function withPermission<Result>(
  permission: string,
  request: () => Promise<Result>,
): Promise<Result> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof DestinationError && error.type === 'AccessDenied')
      throw new MissingPermission(permission);
    throw error;
  }
}
