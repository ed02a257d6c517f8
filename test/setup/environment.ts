/** An address that the global set-up put into the environment. */
export function fromSetUp(name: string): string {
  const value = process.env[name];
  if (value === undefined)
    throw new Error(`${name} is not set: the servers start for tests named .int, .fault and .e2e alone.`);
  return value;
}
