/** Loaded into a gateway with --require: its Node says that it is of the version in NODE_VERSION_SAID. */
Object.defineProperty(process, 'version', { value: process.env['NODE_VERSION_SAID'] });
