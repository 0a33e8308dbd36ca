//! Mutexes, read-write locks, semaphores, conditions, barriers, once guards and thread-local keys.
//!
//! The C types are pthread's own, and so are the functions underneath: a program may mix the two. A
//! misuse that pthread detects aborts the process, since these functions cannot return an error.

use crate::engine::code;
use blacklight_sys::sync::{Barrier, Condition, LocalKey, Mutex, Once, RwLock, Semaphore};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_init(mutex: *mut MaybeUninit<Mutex>) -> c_int {
    // SAFETY: the caller passes memory for a mutex.
    code(Mutex::init(unsafe { &mut *mutex }, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_init_recursive(mutex: *mut MaybeUninit<Mutex>) -> c_int {
    // SAFETY: the caller passes memory for a mutex.
    code(Mutex::init(unsafe { &mut *mutex }, true))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_destroy(mutex: *mut Mutex) {
    // SAFETY: the caller passes a mutex, which it does not use again.
    unsafe { (*mutex).destroy() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_lock(mutex: *mut Mutex) {
    // SAFETY: the caller passes a mutex.
    unsafe { (*mutex).lock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_trylock(mutex: *mut Mutex) -> c_int {
    // SAFETY: the caller passes a mutex.
    code(unsafe { (*mutex).try_lock() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_mutex_unlock(mutex: *mut Mutex) {
    // SAFETY: the caller passes a mutex.
    unsafe { (*mutex).unlock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_init(rwlock: *mut MaybeUninit<RwLock>) -> c_int {
    // SAFETY: the caller passes memory for a lock.
    code(RwLock::init(unsafe { &mut *rwlock }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_destroy(rwlock: *mut RwLock) {
    // SAFETY: the caller passes a lock, which it does not use again.
    unsafe { (*rwlock).destroy() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_rdlock(rwlock: *mut RwLock) {
    // SAFETY: the caller passes a lock.
    unsafe { (*rwlock).read_lock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_tryrdlock(rwlock: *mut RwLock) -> c_int {
    // SAFETY: the caller passes a lock.
    code(unsafe { (*rwlock).try_read_lock() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_rdunlock(rwlock: *mut RwLock) {
    // SAFETY: the caller passes a lock.
    unsafe { (*rwlock).unlock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_wrlock(rwlock: *mut RwLock) {
    // SAFETY: the caller passes a lock.
    unsafe { (*rwlock).write_lock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_trywrlock(rwlock: *mut RwLock) -> c_int {
    // SAFETY: the caller passes a lock.
    code(unsafe { (*rwlock).try_write_lock() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_rwlock_wrunlock(rwlock: *mut RwLock) {
    // SAFETY: the caller passes a lock.
    unsafe { (*rwlock).unlock() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_sem_init(sem: *mut MaybeUninit<Semaphore>, value: c_uint) -> c_int {
    // SAFETY: the caller passes memory for a semaphore.
    code(Semaphore::init(unsafe { &mut *sem }, value))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_sem_destroy(sem: *mut Semaphore) {
    // SAFETY: the caller passes a semaphore, which it does not use again.
    unsafe { (*sem).destroy() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_sem_post(sem: *mut Semaphore) {
    // SAFETY: the caller passes a semaphore.
    unsafe { (*sem).post() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_sem_wait(sem: *mut Semaphore) {
    // SAFETY: the caller passes a semaphore.
    unsafe { (*sem).wait() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_sem_trywait(sem: *mut Semaphore) -> c_int {
    // SAFETY: the caller passes a semaphore.
    code(unsafe { (*sem).try_wait() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_init(cond: *mut MaybeUninit<Condition>) -> c_int {
    // SAFETY: the caller passes memory for a condition.
    code(Condition::init(unsafe { &mut *cond }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_destroy(cond: *mut Condition) {
    // SAFETY: the caller passes a condition, which it does not use again.
    unsafe { (*cond).destroy() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_signal(cond: *mut Condition) {
    // SAFETY: the caller passes a condition.
    unsafe { (*cond).signal() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_broadcast(cond: *mut Condition) {
    // SAFETY: the caller passes a condition.
    unsafe { (*cond).broadcast() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_wait(cond: *mut Condition, mutex: *mut Mutex) {
    // SAFETY: the caller passes a condition and a mutex that it holds.
    unsafe { (*cond).wait(&*mutex) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_cond_timedwait(
    cond: *mut Condition,
    mutex: *mut Mutex,
    timeout_ns: u64,
) -> c_int {
    // SAFETY: the caller passes a condition and a mutex that it holds.
    code(unsafe { (*cond).wait_for(&*mutex, timeout_ns) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_barrier_init(barrier: *mut MaybeUninit<Barrier>, count: c_uint) -> c_int {
    // SAFETY: the caller passes memory for a barrier.
    code(Barrier::init(unsafe { &mut *barrier }, count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_barrier_destroy(barrier: *mut Barrier) {
    // SAFETY: the caller passes a barrier, which it does not use again.
    unsafe { (*barrier).destroy() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_barrier_wait(barrier: *mut Barrier) -> c_int {
    // SAFETY: the caller passes a barrier.
    c_int::from(unsafe { (*barrier).wait() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_once(guard: *mut Once, callback: extern "C" fn()) {
    // SAFETY: the caller passes a guard that it set to UV_ONCE_INIT.
    unsafe { (*guard).call(callback) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_key_create(key: *mut LocalKey) -> c_int {
    // SAFETY: the caller passes room for a key.
    code(LocalKey::create().map(|created| unsafe { key.write(created) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_key_delete(key: *mut LocalKey) {
    // SAFETY: the caller passes a key.
    unsafe { (*key).delete() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_key_get(key: *mut LocalKey) -> *mut c_void {
    // SAFETY: the caller passes a key.
    unsafe { (*key).get() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_key_set(key: *mut LocalKey, value: *mut c_void) {
    // SAFETY: the caller passes a key.
    unsafe { (*key).set(value) }
}
