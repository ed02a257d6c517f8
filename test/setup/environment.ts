/** An environment variable that the global set-up set. @throws Error in tests without servers (.unit, .replay). */
export function fromSetUp(name: string): string {
  const value = process.env[name];
  if (value === undefined)
    throw new Error(`${name} is not set: servers start only for .int, .fault and .e2e tests.`);
  return value;
}
